use crate::site::Site;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Finding, Interest, Lease, LeaseName, LeasePage, Page, Purge, Purged,
    Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl, Watch,
};
use tenure_remote::{OwnThread, PurgeRequests, Remote, Requests, lease_purge, lease_store};

/// Most leases of one call: one statement renews or releases them all.
///
/// Not a round thousand: what falls due in a beat is seldom a whole number of batches, and ten calls shall do
/// for ten thousand.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1_250).expect("not zero");

/// Leases in a PostgreSQL database, one row each, judged by the server's clock.
///
/// Its connections live on a thread of the store's own, so that a blocked runtime of the user's starves no
/// renewal, and renewals have one that nothing else uses. Every request is one statement, and one
/// transaction: where a transaction-mode pooler may stand between, nothing is kept in a session.
pub struct PostgresStore(pub(crate) Remote<Site>);

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the connections: their options hold the password.
        f.debug_struct("PostgresStore")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

lease_store!(PostgresStore);
lease_purge!(PostgresStore);

impl Requests for Site {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "postgres",
            location: self.place.clone(),
            timekeeper: Timekeeper::Server,
            durability: self.durability,
            watch: self.watch,
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        Site::acquire(Arc::clone(self), request).await
    }

    async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        Site::renew(self, requests).await
    }

    async fn release(self: &Arc<Self>, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        Site::release(self, requests).await
    }

    async fn ask(self: &Arc<Self>, request: &Ask) -> Result<Asked, StoreError> {
        self.leave_wish(request).await
    }

    async fn get(self: &Arc<Self>, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        Ok(self.read(name).await?.map(|record| record.lease))
    }

    async fn list(self: &Arc<Self>, page: &Page) -> Result<LeasePage, StoreError> {
        Site::list(self, page).await
    }

    async fn examine(self: &Arc<Self>) -> Result<Vec<Finding>, StoreError> {
        Site::examine(self).await
    }

    async fn watch(
        self: &Arc<Self>,
        thread: &OwnThread,
        scope: Scope,
        _interest: Interest,
    ) -> Result<Box<dyn Watch>, StoreError> {
        let site = Arc::clone(self);
        let watch = thread.run(async move { site.open_watch(scope).await }).await??;
        Ok(Box::new(watch))
    }
}

impl PurgeRequests for Site {
    const NOTES_FIRST: bool = false;

    async fn purge(self: &Arc<Self>, request: &Purge) -> Result<Purged, StoreError> {
        Site::purge(self, request).await
    }
}
