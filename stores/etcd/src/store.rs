use crate::examine;
use crate::roll;
use crate::session::grant;
use crate::site::{Site, TTL_MAX};
use crate::url::StoreUrl;
use crate::version;
use crate::watch;
use crate::wire::lease::{LeaseRevokeRequest, LeaseRevokeResponse};
use crate::wire::path;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Fault, Finding, Interest, Lease, LeaseName, LeasePage, Page, Purge,
    Purged, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl,
    Watch, WatchSource,
};
use tenure_remote::{Deed, OwnThread, PurgeRequests, Remote, Requests, System, lease_purge, lease_store};

/// Most leases that one call renews or releases. A renewal of them all is three requests.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

/// The shortest ttl of a server with the default `--election-timeout`, for one that cannot be asked as an
/// alarm rings.
const TTL_MIN_ASSUMED_SECS: u64 = 2;

/// As it is named to people and to the operating system.
pub(crate) const SYSTEM: System = System {
    name: "etcd",
    thread: "tenure-etcd",
};

/// Leases in etcd.
///
/// All leases of this store with the same ttl share a session (what etcd calls a lease), so that one request
/// extends them all; each has a verdict of its own. The token of a term is the revision that began it. The
/// driver's connections live on a thread of the store's own, so that blocked user code cannot starve a
/// renewal, and renewals have one for themselves. Dropping the store ends the thread without waiting for it,
/// and revokes nothing: what was not released ends by its ttl.
///
/// Answers can be awaited on any executor.
pub struct EtcdStore(Remote<Site>);

lease_store!(EtcdStore);
lease_purge!(EtcdStore);

impl EtcdStore {
    /// Connects by a URL: `etcd://[user:password@]host[:port][,host[:port]…][/prefix][?options]`, `etcds://`
    /// for TLS. Port 2379 and the prefix `tenure` are the defaults.
    ///
    /// | option | default | meaning |
    /// |---|---|---|
    /// | `ca=` | Mozilla's roots | a PEM file of the roots that are trusted |
    /// | `cert=`, `key=` | none | PEM files of a client's certificate and its key |
    ///
    /// Asks each member how it stands and for its version (see [`StoreTraits::durability`]), and the cluster
    /// for a session of a second, to know which is the shortest ttl that it grants.
    ///
    /// # Errors
    /// [`StoreError`], after 8 s at most, and where members are silent 3 s more for each, or 4 s with a user;
    /// no lease was touched. The message never holds a password. [`Fault::Invalid`] for a URL that cannot be
    /// read, or a file that it names, or members that say that they are of different clusters (a member that
    /// says so later is passed over), [`Fault::Unreachable`], [`Fault::Unauthenticated`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let site = Site::new(StoreUrl::parse(url)?)?;
        Ok(Self(Remote::open(SYSTEM, site.opened()).await?))
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the members: they hold the password.
        f.debug_struct("EtcdStore")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

impl Site {
    /// Finds out what the members are, and what the shortest ttl is.
    async fn opened(mut self) -> Result<Self, StoreError> {
        let answers = roll::ask_each(&self.members).await;
        self.members.cluster.is(roll::one_cluster(&answers)?);
        self.durability = version::durability(&roll::versions(&answers));
        self.ttl_min = match grant(&self.requests, 1).await {
            Ok(session) => {
                let revoke = LeaseRevokeRequest { id: session.id };
                // If this fails it ends by itself.
                let _revoked: Result<LeaseRevokeResponse, _> =
                    self.requests.unary(path::LEASE_REVOKE, &revoke).await;
                session.ttl
            }
            Err(failure) => {
                let error = failure.error(Deed::Read, "connecting", &self.place);
                // Whoever examines it is to be told so.
                if error.fault != Fault::Full && !failure.is_corrupt() {
                    return Err(error);
                }
                tracing::warn!("{error}");
                Ttl::from_secs(TTL_MIN_ASSUMED_SECS).map_err(|_| self.misunderstood())?
            }
        };
        Ok(self)
    }
}

impl Requests for Site {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "etcd",
            location: self.place.clone(),
            timekeeper: Timekeeper::Session,
            durability: self.durability,
            watch: WatchSource::Push,
            token_source: TokenSource::Revision,
            batch_max: BATCH_MAX,
            ttl_min: self.ttl_min,
            ttl_max: TTL_MAX,
        }
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
        examine::findings(self).await
    }

    async fn watch(
        self: &Arc<Self>,
        thread: &OwnThread,
        scope: Scope,
        _interest: Interest,
    ) -> Result<Box<dyn Watch>, StoreError> {
        let watch = watch::open(Arc::clone(self), thread, scope).await?;
        Ok(Box::new(watch) as Box<dyn Watch>)
    }
}

impl PurgeRequests for Site {
    const NOTES_FIRST: bool = true;

    async fn purge(self: &Arc<Self>, request: &Purge) -> Result<Purged, StoreError> {
        Site::purge(self, request).await
    }
}
