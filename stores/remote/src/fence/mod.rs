//! A fence whose requests run on a thread of its own.

mod marks;
mod raising;

pub use marks::{MarkRow, Marks, Sought, ruled};
pub use raising::{BumpSetUp, ClaimRow};

use crate::refusals::{Noter, Notes};
use crate::thread::{OwnThread, Running};
use std::future::Future;
use std::sync::Arc;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, Leases, Mark, MarkPage, ResourceName, StoreError, Term,
};

/// What is asked of a site, and what it refuses is noted there: on a thread of the fence's own, or its
/// store's. Dropping it waits for nothing.
///
/// Where the site keeps each mark in a row ([`Marks`]), it is a whole [`Fence`].
pub struct RemoteFence<S: Notes> {
    /// Has the site, too. `None` only while it is dropped.
    noter: Option<Arc<Noter<Arc<S>>>>,
    thread: Arc<OwnThread>,
    leases: Leases,
}

impl<S: Notes> Clone for RemoteFence<S> {
    fn clone(&self) -> Self {
        Self {
            noter: self.noter.clone(),
            thread: Arc::clone(&self.thread),
            leases: self.leases,
        }
    }
}

impl<S: Notes> RemoteFence<S> {
    /// A fence over a thread that runs already, for leases that are here or elsewhere.
    #[must_use]
    pub fn new(site: Arc<S>, thread: Arc<OwnThread>, leases: Leases) -> Self {
        Self {
            noter: Some(Noter::new(site)),
            thread,
            leases,
        }
    }

    fn noter(&self) -> &Arc<Noter<Arc<S>>> {
        self.noter.as_ref().expect("the noter is taken by drop alone")
    }

    /// Where the marks are.
    #[must_use]
    pub fn site(&self) -> &Arc<S> {
        self.noter().notes()
    }

    /// Where the leases are.
    #[must_use]
    pub fn leases(&self) -> Leases {
        self.leases
    }

    /// Runs `work` on the thread.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Running<T> {
        self.thread.run(work)
    }

    /// Runs a look or a change at the site, on its thread.
    ///
    /// # Errors
    /// Those of `work`, as [`FenceError::Store`].
    pub async fn at_site<T: Send + 'static, W>(&self, work: impl FnOnce(Arc<S>) -> W) -> Result<T, FenceError>
    where
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Ok(self.run(work(Arc::clone(self.site()))).await??)
    }

    /// Counts a refusal beside the mark that was found; where there is none, there is nothing to count
    /// beside.
    ///
    /// # Errors
    /// Always: the refusal.
    pub fn refuse<T, M>(&self, found: Option<&M>, refusal: FenceError) -> Result<T, FenceError> {
        if found.is_some() {
            self.count_refusal(&refusal);
        }
        Err(refusal)
    }

    /// As [`Fence::count_refusal`].
    pub fn count_refusal(&self, refusal: &FenceError) {
        self.noter().count(&self.thread, refusal);
    }

    /// As [`Fence::note_refusals`].
    #[must_use]
    pub fn note_refusals(&self) -> Answer<'static, ()> {
        let noter = Arc::clone(self.noter());
        let noting = self.run(async move { noter.note().await });
        // The thread gives up only when the fence is dropped.
        Box::pin(async move { drop(noting.await) })
    }
}

impl<S: Notes> Drop for RemoteFence<S> {
    fn drop(&mut self) {
        // What a driver does when dropped may need its runtime.
        if let Some(noter) = self.noter.take() {
            self.thread.drop_there(noter);
        }
    }
}

impl<S: Marks> RemoteFence<S> {
    /// The mark of `resource`, with its refusals.
    ///
    /// # Errors
    /// [`FenceError::Store`].
    pub async fn find(&self, resource: &ResourceName) -> Result<Option<Mark>, FenceError> {
        let resource = resource.clone();
        self.at_site(|site| async move { marks::mark(&*site, &resource).await })
            .await
    }
}

impl<S: Marks> Fence for RemoteFence<S> {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(async move {
            let (leases, owned, asked) = (self.leases, resource.clone(), term.clone());
            let found = self
                .at_site(|site| async move { raising::claim(&*site, leases, &owned, &asked).await })
                .await?;
            found
                .ruled(resource, term)
                .or_else(|error| self.refuse(found.mark.as_ref(), error))
        })
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let found = self.find(resource).await?;
            ruled(resource, term, found.as_ref()).or_else(|error| self.refuse(found.as_ref(), error))
        })
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        Box::pin(self.find(resource))
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        let after = after.cloned();
        Box::pin(self.at_site(|site| async move { marks::page(&*site, after.as_ref()).await }))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        let (leases, bump) = (self.leases, bump.clone());
        Box::pin(self.at_site(move |site| async move { raising::bump(&*site, leases, &bump).await }))
    }

    fn count_refusal(&self, refusal: &FenceError) {
        RemoteFence::count_refusal(self, refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        RemoteFence::note_refusals(self)
    }
}

/// Implements [`Fence`] for a public type whose only field is a [`RemoteFence`] with [`Marks`]. What is said
/// before the type is said of its `claim`.
#[macro_export]
macro_rules! fence {
    ($(#[$of_claim:meta])* $fence:ty) => {
        impl $crate::tenure_core::Fence for $fence {
            $(#[$of_claim])*
            fn claim<'a>(
                &'a self,
                resource: &'a $crate::tenure_core::ResourceName,
                term: &'a $crate::tenure_core::Term,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::Claimed, $crate::tenure_core::FenceError>,
            > {
                self.0.claim(resource, term)
            }

            fn check<'a>(
                &'a self,
                resource: &'a $crate::tenure_core::ResourceName,
                term: &'a $crate::tenure_core::Term,
            ) -> $crate::tenure_core::Answer<'a, Result<(), $crate::tenure_core::FenceError>> {
                self.0.check(resource, term)
            }

            fn mark<'a>(
                &'a self,
                resource: &'a $crate::tenure_core::ResourceName,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<Option<$crate::tenure_core::Mark>, $crate::tenure_core::FenceError>,
            > {
                self.0.mark(resource)
            }

            fn marks<'a>(
                &'a self,
                after: Option<&'a $crate::tenure_core::Cursor>,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::MarkPage, $crate::tenure_core::FenceError>,
            > {
                self.0.marks(after)
            }

            fn bump<'a>(
                &'a self,
                bump: &'a $crate::tenure_core::Bump,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::Mark, $crate::tenure_core::FenceError>,
            > {
                self.0.bump(bump)
            }

            fn count_refusal(&self, refusal: &$crate::tenure_core::FenceError) {
                self.0.count_refusal(refusal);
            }

            fn note_refusals(&self) -> $crate::tenure_core::Answer<'_, ()> {
                self.0.note_refusals()
            }
        }
    };
}
