//! Cleaning up a store whose requests run on a thread of its own.

use crate::store::{Remote, Requests};
use std::future::Future;
use std::sync::Arc;
use tenure_core::{Answer, LeasePurge, Purge, Purged, StoreError};

/// What a store whose unused records can be removed asks of its system.
pub trait PurgeRequests: Requests {
    /// As [`LeasePurge::notes_first`].
    const NOTES_FIRST: bool;

    /// As [`LeasePurge::purge`].
    fn purge(self: &Arc<Self>, request: &Purge) -> impl Future<Output = Result<Purged, StoreError>> + Send;
}

impl<S: PurgeRequests> LeasePurge for Remote<S> {
    fn notes_first(&self) -> bool {
        S::NOTES_FIRST
    }

    fn purge<'a>(&'a self, request: &'a Purge) -> Answer<'a, Result<Purged, StoreError>> {
        let (site, owned) = (Arc::clone(self.site()), request.clone());
        Box::pin(async move {
            request.check()?;
            self.thread().run(async move { site.purge(&owned).await }).await?
        })
    }
}

/// Implements [`LeasePurge`] for a public type whose only field is a [`Remote`].
#[macro_export]
macro_rules! lease_purge {
    ($store:ty) => {
        impl $crate::tenure_core::LeasePurge for $store {
            fn notes_first(&self) -> bool {
                $crate::tenure_core::LeasePurge::notes_first(&self.0)
            }

            fn purge<'a>(
                &'a self,
                request: &'a $crate::tenure_core::Purge,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::Purged, $crate::tenure_core::StoreError>,
            > {
                $crate::tenure_core::LeasePurge::purge(&self.0, request)
            }
        }
    };
}
