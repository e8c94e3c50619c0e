use crate::durability::Settings;
use crate::fault::Deed;
use crate::site::Site;
use crate::thread::OwnThread;
use crate::url::{Set, StoreUrl, invalid};
use crate::watch::MessageWatch;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Durability, Finding, Lease, LeaseName, LeasePage, LeaseStore,
    Page, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl,
    Watch, WatchSource,
};

/// Most leases that one call renews or releases. One script does it, and nobody else is served meanwhile.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1000).expect("not zero");

/// Leases in Redis or Valkey: one server, a cluster, or a primary that sentinels watch.
///
/// Every decision is one script on the server's `TIME`. The driver's connections live on a thread of the store's
/// own, so that blocked user code cannot starve a renewal, and renewals have one for themselves. Dropping the store
/// ends the thread without waiting for it.
///
/// What a confirmed write is worth depends on the server: [`traits`](LeaseStore::traits) says
/// [`FenceOnly`](Durability::FenceOnly) and why where an acknowledged write can be lost.
///
/// Answers can be awaited on any executor.
pub struct RedisStore {
    /// `None` only while it is dropped.
    site: Option<Arc<Site>>,
    thread: OwnThread,
    durability: Durability,
}

impl RedisStore {
    /// Connects by a URL: `redis://[[user]:password@]host[:port][/database][?options]`, `rediss://` for TLS,
    /// `redis+sentinel://host[:port],…/database?primary=NAME` for a primary that sentinels watch.
    ///
    /// | option | default | meaning |
    /// |---|---|---|
    /// | `prefix=` | `tenure` | what the names of all keys and channels begin with, in braces; 1 to 100 bytes |
    /// | `purgeAfter=` | never | remove names that nobody used for so long: `1d` to `36500d`, and never below ten ttls |
    /// | `primary=` | — | the name by which the sentinels know the primary |
    /// | `sentinelUser=`, `sentinelPassword=` | as the servers' | who asks the sentinels |
    ///
    /// # Errors
    /// [`StoreError`], not applied, after 5 s at most. The message never holds a password.
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read,
    /// [`Fault::Unreachable`](tenure_core::Fault::Unreachable),
    /// [`Fault::Unauthenticated`](tenure_core::Fault::Unauthenticated),
    /// [`Fault::ReadOnly`](tenure_core::Fault::ReadOnly) for a replica,
    /// [`Fault::Unsupported`](tenure_core::Fault::Unsupported) for a server before Redis 6.2.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        if url.set == Set::Independent {
            return Err(invalid(
                "a quorum of independent servers is opened with QuorumStore::connect",
            ));
        }
        let thread = OwnThread::start()?;
        let site = Arc::new(Site::new(url));
        let opened = Arc::clone(&site);
        let durability = thread
            .run(async move { opened.in_time(Deed::Read, "connecting", opened.assess()).await })
            .await??;
        Ok(Self {
            site: Some(site),
            thread,
            durability,
        })
    }

    fn site(&self) -> &Arc<Site> {
        self.site.as_ref().expect("the site is taken by drop alone")
    }
}

impl Site {
    /// What the server that rules the records now keeps of what it confirms.
    pub(crate) async fn assess(&self) -> Result<Durability, StoreError> {
        let open = self.requests.open().await?;
        let settings = Settings::ask(&self.requests, &self.place).await?;
        Ok(settings.durability(self.target.set(), open.dialled.hello.clustered))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the target: it holds the password.
        f.debug_struct("RedisStore")
            .field("place", &self.site().place)
            .finish_non_exhaustive()
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        if let Some(site) = self.site.take() {
            self.thread.drop_there(site);
        }
    }
}

impl LeaseStore for RedisStore {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "redis",
            location: self.site().place.clone(),
            timekeeper: Timekeeper::Server,
            durability: self.durability,
            watch: WatchSource::Push,
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
            let answers = self.thread.run(async move { site.release(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let (site, request) = (Arc::clone(self.site()), request.clone());
        Box::pin(async move { self.thread.run(async move { site.ask(&request).await }).await? })
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let (site, name) = (Arc::clone(self.site()), name.clone());
        Box::pin(async move { self.thread.run(async move { site.get(&name).await }).await? })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let (site, page) = (Arc::clone(self.site()), page.clone());
        Box::pin(async move { self.thread.run(async move { site.list(&page).await }).await? })
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let (site, scope) = (Arc::clone(self.site()), scope.clone());
        Box::pin(async move {
            let watch = MessageWatch::open(site, &self.thread, scope).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        let site = Arc::clone(self.site());
        Box::pin(async move { self.thread.run(async move { site.examine().await }).await? })
    }
}
