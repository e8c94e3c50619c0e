//! The store at the other end of two connections.

use crate::clock::{BootClock, LeaderClock};
use crate::connect::Servers;
use crate::durability::{Syncs, judge};
use crate::keys::Keys;
use crate::link::Link;
use crate::moments::told_ms;
use crate::swap::Kv;
use crate::url::StoreUrl;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Ask, Asked, Durability, Finding, Interest, Lease, LeaseName, LeasePage, LeaseStore,
    ObservedStore, Page, Purge, Purged, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits,
    Timekeeper, TokenSource, Ttl, Watch, WatchSource,
};
use tenure_remote::{OwnThread, PurgeRequests, Requests};

/// Most leases of one call. Each takes a read and a write of its own, which travel side by side.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(500).expect("not zero");

/// The leases of one bucket.
pub(crate) struct Site {
    requests: ObservedStore<Kv, BootClock>,
    /// The same over a connection of their own: nothing else stands before a renewal. What one has seen, both
    /// know.
    renewals: ObservedStore<Kv, BootClock>,
    /// That connection.
    of_renewals: Arc<Link>,
    /// The records themselves, for cleaning up.
    kv: Kv,
}

impl Site {
    /// Connects, and finds the bucket or makes it.
    ///
    /// # Errors
    /// [`StoreError`], not applied but for a bucket that may have been made.
    pub(crate) async fn open(url: StoreUrl) -> Result<Self, StoreError> {
        let keys = Keys::new(&url.bucket);
        let place = url.shown();
        let (rate_error_ppm, replicas, monitors) = (url.rate_error_ppm, url.replicas, url.monitors.clone());
        let servers = Arc::new(Servers::new(url, place));
        let link = Arc::new(Link::new(Arc::clone(&servers)));
        let info = link.bucket(&keys, replicas).await?;
        let clock = LeaderClock::new(rate_error_ppm);
        if let Some(now_ms) = told_ms(&info) {
            clock.has_shown(now_ms);
        }
        link.refuse_divided(&keys, &info).await?;
        let durability = judge(&info, &Syncs::ask(&monitors).await);
        let kv = Kv::new(link, keys, durability, monitors, clock);
        let requests = ObservedStore::new(kv.clone(), BootClock, rate_error_ppm);
        let of_renewals = Arc::new(Link::new(servers));
        let beside = Kv {
            link: Arc::clone(&of_renewals),
            ..kv.clone()
        };
        Ok(Self {
            renewals: requests.beside(beside),
            of_renewals,
            requests,
            kv,
        })
    }
}

/// What every store of this kind is and can do.
pub(crate) fn traits(place: &str, durability: Durability) -> StoreTraits {
    StoreTraits {
        kind: "nats",
        location: place.to_owned(),
        timekeeper: Timekeeper::Observer,
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
        self.requests.traits()
    }

    async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        // The servers may let in one connection and not another: whoever could not renew a lease does not
        // take it. Both at once: where a server has died, neither is there.
        tokio::try_join!(self.of_renewals.open(), self.kv.link.open())?;
        self.requests.acquire(request).await
    }

    async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        self.renewals.renew(requests).await
    }

    async fn release(self: &Arc<Self>, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        self.requests.release(requests).await
    }

    async fn ask(self: &Arc<Self>, request: &Ask) -> Result<Asked, StoreError> {
        self.requests.ask(request).await
    }

    async fn get(self: &Arc<Self>, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        // Beside it, and seldom.
        let (lease, ()) = tokio::join!(self.requests.get(name), self.kv.keep_clock());
        lease
    }

    async fn list(self: &Arc<Self>, page: &Page) -> Result<LeasePage, StoreError> {
        let (leases, ()) = tokio::join!(self.requests.list(page), self.kv.keep_clock());
        leases
    }

    async fn examine(self: &Arc<Self>) -> Result<Vec<Finding>, StoreError> {
        self.requests.examine().await
    }

    async fn watch(
        self: &Arc<Self>,
        thread: &OwnThread,
        scope: Scope,
        interest: Interest,
    ) -> Result<Box<dyn Watch>, StoreError> {
        let site = Arc::clone(self);
        thread
            .run(async move { site.requests.watch(&scope, interest).await })
            .await?
    }
}

impl PurgeRequests for Site {
    const NOTES_FIRST: bool = false;

    async fn purge(self: &Arc<Self>, request: &Purge) -> Result<Purged, StoreError> {
        self.kv.purge(request).await
    }
}
