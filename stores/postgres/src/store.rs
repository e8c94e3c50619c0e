use crate::site::Site;
use crate::thread::OwnThread;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Finding, Lease, LeaseName, LeasePage, LeaseStore, Page, Release,
    Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl, Watch,
};

/// Most leases of one call: one statement renews or releases them all.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1_000).expect("a thousand is not zero");

/// Leases in a PostgreSQL database, one row each, judged by the server's clock.
///
/// Its connections live on a thread of the store's own, so that a blocked runtime of the user's starves no renewal, and
/// renewals have one that nothing else uses. Every request is one statement, and one transaction: nothing is kept in
/// a session, so a transaction-mode pooler may stand between.
pub struct PostgresStore {
    pub(crate) site: Arc<Site>,
    pub(crate) thread: Arc<OwnThread>,
}

impl PostgresStore {
    pub(crate) fn new(site: Site, thread: OwnThread) -> Self {
        Self {
            site: Arc::new(site),
            thread: Arc::new(thread),
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the connections: their options hold the password.
        f.debug_struct("PostgresStore")
            .field("place", &self.site.place)
            .finish_non_exhaustive()
    }
}

impl LeaseStore for PostgresStore {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "postgres",
            location: self.site.place.clone(),
            timekeeper: Timekeeper::Server,
            durability: self.site.durability,
            watch: self.site.watch,
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let (site, request) = (Arc::clone(&self.site), request.clone());
        Box::pin(async move {
            self.thread
                .run(async move { site.acquire(&request).await })
                .await?
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        let (site, owned) = (Arc::clone(&self.site), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { site.renew(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        let (site, owned) = (Arc::clone(&self.site), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { site.release(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let (site, request) = (Arc::clone(&self.site), request.clone());
        Box::pin(async move {
            self.thread
                .run(async move { site.leave_wish(&request).await })
                .await?
        })
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let (site, name) = (Arc::clone(&self.site), name.clone());
        Box::pin(async move {
            let record = self.thread.run(async move { site.read(&name).await }).await??;
            Ok(record.map(|record| record.lease))
        })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let (site, page) = (Arc::clone(&self.site), page.clone());
        Box::pin(async move { self.thread.run(async move { site.list(&page).await }).await? })
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let (site, scope) = (Arc::clone(&self.site), scope.clone());
        Box::pin(async move {
            let watch = self
                .thread
                .run(async move { site.open_watch(scope).await })
                .await??;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        let site = Arc::clone(&self.site);
        Box::pin(async move { self.thread.run(async move { site.examine().await }).await? })
    }
}
