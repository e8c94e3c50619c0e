use crate::SYSTEM;
use crate::durability::{RunId, Settings};
use crate::site::Site;
use crate::url::{Set, StoreUrl, invalid};
use crate::watch;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Durability, Finding, Interest, Lease, LeaseName, LeasePage, Page, Purge,
    Purged, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl,
    Watch, WatchSource,
};
use tenure_remote::{OwnThread, PurgeRequests, Remote, Requests, lease_purge, lease_store};

/// Most leases that one call renews or releases. One script does it, and nobody else is served meanwhile.
///
/// Not a round thousand: what falls due in a beat is seldom a whole number of batches, and ten calls shall do
/// for ten thousand.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1_250).expect("not zero");

/// Leases in Redis or Valkey: one server, a cluster, or a primary that sentinels watch.
///
/// Every decision is one script on the server's `TIME`. The driver's connections live on a thread of the
/// store's own, so that blocked user code cannot starve a renewal, and renewals have one for themselves.
/// Dropping the store ends the thread without waiting for it.
///
/// What a confirmed write is worth depends on the server: [`traits`](tenure_core::LeaseStore::traits) says
/// [`FenceOnly`](Durability::FenceOnly) and why where an acknowledged write can be lost.
///
/// Answers can be awaited on any executor.
pub struct RedisStore(Remote<Site>);

impl RedisStore {
    /// Connects by a URL: `redis://[[user]:password@]host[:port][/database][?options]`, `rediss://` for TLS,
    /// `redis+sentinel://host[:port],…/database?primary=NAME` for a primary that sentinels watch. Of a
    /// cluster, several members may be named, `redis://host1,host2`: the first that answers leads to the one
    /// that has the slot.
    ///
    /// | option | default | meaning |
    /// |---|---|---|
    /// | `prefix=` | `tenure` | what the names of all keys and channels begin with, in braces; 1 to 100 bytes |
    /// | `purgeAfter=` | never | remove names that nobody used for so long: `1d` to `36500d`, and never below ten ttls; not for a quorum |
    /// | `ca=` | those that the system trusts | a PEM file of the roots that are trusted; for TLS |
    /// | `cert=`, `key=` | none | PEM files of a client's certificate and its key; for TLS |
    /// | `primary=` | — | the name by which the sentinels know the primary |
    /// | `sentinelUser=`, `sentinelPassword=` | as the servers' | who asks the sentinels; empty for nobody, without a password |
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
        let opening = async move {
            let mut site = Site::new(url);
            site.durability = site.meet().await?;
            Ok(site)
        };
        Ok(Self(Remote::open(SYSTEM, opening).await?))
    }
}

impl Site {
    /// What the server that rules the records now keeps of what it confirms; and which one that is, if it
    /// tells.
    pub(crate) async fn assess(&self) -> Result<(Durability, Option<RunId>), StoreError> {
        let open = self.requests.open().await?;
        let settings = Settings::ask(&self.requests, &self.place).await?;
        let durability = settings.durability(self.target.set(), open.connection.hello.clustered);
        Ok((durability, settings.run_id()))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the target: it holds the password.
        f.debug_struct("RedisStore")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

lease_store!(RedisStore);
lease_purge!(RedisStore);

/// What every kind of Redis answers of itself.
pub(crate) fn traits(place: &str, durability: Durability) -> StoreTraits {
    StoreTraits {
        kind: "redis",
        location: place.to_owned(),
        timekeeper: Timekeeper::Server,
        durability,
        watch: WatchSource::Push,
        token_source: TokenSource::CounterAndClock,
        batch_max: BATCH_MAX,
        ttl_min: Ttl::MIN,
        ttl_max: Ttl::MAX,
    }
}

impl Requests for Site {
    fn traits(&self) -> StoreTraits {
        traits(&self.place, self.durability)
    }

    async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        Site::acquire(self, request).await
    }

    async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        Site::renew(self, requests).await
    }

    async fn release(self: &Arc<Self>, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        Site::release(self, requests).await
    }

    async fn ask(self: &Arc<Self>, request: &Ask) -> Result<Asked, StoreError> {
        Site::ask(self, request).await
    }

    async fn get(self: &Arc<Self>, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        Site::get(self, name).await
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
        let watch = watch::open(Arc::clone(self), thread, scope).await?;
        Ok(Box::new(watch))
    }
}

impl PurgeRequests for Site {
    const NOTES_FIRST: bool = false;

    async fn purge(self: &Arc<Self>, request: &Purge) -> Result<Purged, StoreError> {
        Site::purge(self, request).await
    }
}
