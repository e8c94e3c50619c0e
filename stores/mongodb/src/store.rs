use crate::builder::MongoStoreBuilder;
use crate::site::{Site, Topology};
use crate::thread::OwnThread;
use crate::watch::ChangeWatch;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Durability, Finding, Lease, LeaseName, LeasePage, LeasePurge,
    LeaseStore, Page, Purge, Purged, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits,
    Timekeeper, TokenSource, Ttl, Watch, WatchSource,
};

/// Most leases that one call renews or releases.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1000).expect("not zero");

/// Leases in a MongoDB collection.
///
/// Every decision is one `findAndModify` with a pipeline on the server's `$$NOW`, confirmed by a majority and
/// journalled. The driver's client lives on a thread of the store's own, so that blocked user code cannot
/// starve a renewal. Dropping the store ends the thread without waiting for it.
///
/// Answers can be awaited on any executor.
pub struct MongoStore {
    /// `None` only while it is dropped.
    site: Option<Arc<Site>>,
    thread: OwnThread,
}

impl MongoStore {
    /// Connects by a URL: `mongodb://[user:password@]host[:port][,…][/database][?options]`.
    ///
    /// The database is the one in the path, else `tenure`. Beside the driver's options it knows
    /// `collection=` (default `job_leases`) and `purgeAfter=` (as `30d`; default: nothing is ever removed).
    /// For the rest see [`MongoStoreBuilder`].
    ///
    /// # Errors
    /// [`StoreError`], not applied, after at most [`MongoStoreBuilder::connect_time_max`]. The message never
    /// holds the password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Settings that a URL does not have, or that are nicer to write in code.
    #[must_use]
    pub fn builder() -> MongoStoreBuilder {
        MongoStoreBuilder::new()
    }

    /// As [`builder`](Self::builder), for locks: in the database `MongoLocks` and the collection
    /// `pessimisticLocks`, unless the URL names others.
    ///
    /// The records are those of every lease; only the place differs.
    #[must_use]
    pub fn for_locks() -> MongoStoreBuilder {
        MongoStoreBuilder::for_locks()
    }

    /// Uses a client that exists. Prefer [`connect`](Self::connect).
    ///
    /// The client's monitors and connections stay on the runtime that made it: if user code blocks that
    /// runtime, renewals wait for it, and a lease may be lost. Each watch keeps one of the client's
    /// connections busy (`maxPoolSize`, 10 by default): leave some for renewals. The concerns of every request are still
    /// majority and journal, but its own retries remain: a write that the driver repeats is answered without
    /// the server's clock, which this store reports as an unknown outcome; the engine's next request with the
    /// same attempt resolves it.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn with_client(
        client: mongodb::Client,
        database: &str,
        collection: &str,
    ) -> Result<Self, StoreError> {
        Self::builder()
            .collection(collection)
            .attach(client, database)
            .await
    }

    pub(crate) fn new(site: Site, thread: OwnThread) -> Self {
        Self {
            site: Some(Arc::new(site)),
            thread,
        }
    }

    fn site(&self) -> &Arc<Site> {
        self.site.as_ref().expect("the site is taken by drop alone")
    }
}

impl fmt::Debug for MongoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: its options hold the password.
        f.debug_struct("MongoStore")
            .field("place", &self.site().place)
            .finish_non_exhaustive()
    }
}

impl Drop for MongoStore {
    fn drop(&mut self) {
        if let Some(site) = self.site.take() {
            self.thread.drop_there(site);
        }
    }
}

impl LeaseStore for MongoStore {
    fn traits(&self) -> StoreTraits {
        let site = self.site();
        StoreTraits {
            kind: "mongodb",
            location: site.place.clone(),
            timekeeper: Timekeeper::Server,
            durability: Durability::Safe,
            watch: match site.topology {
                Topology::Standalone => WatchSource::Absent,
                Topology::ReplicaSet { .. } | Topology::Sharded => WatchSource::Push,
            },
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let (site, request) = (Arc::clone(self.site()), request.clone());
        Box::pin(async move {
            self.thread
                .run(async move { site.acquire(&request).await })
                .await?
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        let (site, owned) = (Arc::clone(self.site()), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { site.renew(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        let (site, owned) = (Arc::clone(self.site()), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(site.release(owned)).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let (site, request) = (Arc::clone(self.site()), request.clone());
        Box::pin(async move { self.thread.run(async move { site.ask(&request).await }).await? })
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let (site, name) = (Arc::clone(self.site()), name.clone());
        Box::pin(async move {
            let record = self.thread.run(async move { site.read(&name).await }).await??;
            Ok(record.map(|record| record.lease))
        })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let (site, page) = (Arc::clone(self.site()), page.clone());
        Box::pin(async move { self.thread.run(async move { site.list(&page).await }).await? })
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let (site, scope) = (Arc::clone(self.site()), scope.clone());
        Box::pin(async move {
            let watch = ChangeWatch::open(site, &self.thread, scope).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        let site = Arc::clone(self.site());
        Box::pin(async move { self.thread.run(async move { site.examine().await }).await? })
    }
}

impl LeasePurge for MongoStore {
    fn purge<'a>(&'a self, request: &'a Purge) -> Answer<'a, Result<Purged, StoreError>> {
        let (site, request) = (Arc::clone(self.site()), request.clone());
        Box::pin(async move { self.thread.run(async move { site.purge(&request).await }).await? })
    }
}
