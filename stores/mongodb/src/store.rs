use crate::builder::MongoStoreBuilder;
use crate::fault::Deed;
use crate::identity::Whose;
use crate::lines::Lines;
use crate::site::Site;
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

/// Most leases that one call renews or releases.
///
/// Not a round thousand: what falls due in a beat is seldom a whole number of batches, and ten calls shall do
/// for ten thousand.
const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(1_250).expect("not zero");

/// Leases in a MongoDB collection.
///
/// Every decision is one `findAndModify` with a pipeline on the server's `$$NOW`, confirmed by a majority and
/// journalled. The driver's client lives on a thread of the store's own, so that blocked user code cannot
/// starve a renewal. Dropping the store ends the thread without waiting for it.
///
/// Answers can be awaited on any executor.
pub struct MongoStore(pub(crate) Remote<Lines>);

impl MongoStore {
    /// Connects by a URL: `mongodb://[user:password@]host[:port][,…][/database][?options]`.
    ///
    /// The database is the one in the path (not `local`, which a fail-over forgets), else `tenure`. Beside
    /// the driver's options it knows `collection=` (default `job_leases`) and `purgeAfter=` (as `30d`;
    /// default: nothing is ever removed). For the rest see [`MongoStoreBuilder`].
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
    /// The records are those of every lease; only the place differs. It is a place of its own: `tenure lock`,
    /// and whoever connects without the preset, find these locks by
    /// `mongodb://host/MongoLocks?collection=pessimisticLocks`, and with the URL of the server alone they
    /// have others of the same names.
    #[must_use]
    pub fn for_locks() -> MongoStoreBuilder {
        MongoStoreBuilder::for_locks()
    }

    /// Uses a client that exists. Prefer [`connect`](Self::connect).
    ///
    /// The client's monitors and connections stay on the runtime that made it: if user code blocks that
    /// runtime, renewals wait for it, and a lease may be lost. Each watch keeps one of the client's
    /// connections busy (`maxPoolSize`, 10 by default): leave some for renewals. The concerns of every
    /// request are still majority and journal, but its own retries remain: a write that the driver repeats is
    /// answered without the server's clock, which this store reports as an unknown outcome; the engine's next
    /// request with the same attempt resolves it. Where the server refuses a write, the outcome is told as
    /// unknown, too: the refusal may be that of a repetition, and the write whose answer was lost may stand.
    /// Nor does the driver show such a store where the client leads: members of different replica sets are
    /// not refused, a client that is tied to one member does not go on with its set alone, and another store
    /// that answers later is not told from this one.
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
}

impl fmt::Debug for MongoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: its options hold the password.
        f.debug_struct("MongoStore")
            .field("place", &self.0.site().opened().place)
            .finish_non_exhaustive()
    }
}

lease_store!(MongoStore);

impl Requests for Lines {
    fn traits(&self) -> StoreTraits {
        let site = self.opened();
        StoreTraits {
            kind: "mongodb",
            location: site.place.clone(),
            timekeeper: Timekeeper::Server,
            durability: Durability::Safe,
            watch: match site.unwatchable() {
                Some(_) => WatchSource::Absent,
                None => WatchSource::Push,
            },
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    async fn acquire(self: &Arc<Self>, request: &Acquire) -> Result<Acquired, StoreError> {
        self.dial_for_renewals();
        let site = self.site();
        site.at_ours(Deed::Write, site.acquire(request)).await
    }

    async fn renew(self: &Arc<Self>, requests: &[Renew]) -> Vec<Result<Renewed, StoreError>> {
        let (site, _turn) = self.renewing().await;
        let whose = |answer: &Renewed| match answer {
            Renewed::Extended { .. } => Whose::Ours,
            Renewed::Lost(Some(_)) => Whose::Anothers,
            Renewed::Lost(None) => Whose::Nobodys,
        };
        site.all_at_ours(requests.len(), site.renew(requests), whose)
            .await
    }

    async fn release(self: &Arc<Self>, requests: &[Release]) -> Vec<Result<Released, StoreError>> {
        // Whatever needs one more connection may have its login refused, and that would end those of the
        // renewals.
        let (site, _turn) = match requests {
            [_only] => self.releasing_one(),
            _ => (self.site(), None),
        };
        let release = Site::release(Arc::clone(&site), requests.to_vec());
        let whose = |answer: &Released| match answer {
            Released::Vacated => Whose::Ours,
            Released::NotYours(Some(_)) => Whose::Anothers,
            Released::NotYours(None) => Whose::Nobodys,
        };
        site.all_at_ours(requests.len(), release, whose).await
    }

    async fn ask(self: &Arc<Self>, request: &Ask) -> Result<Asked, StoreError> {
        let site = self.site();
        site.at_ours(Deed::Write, site.ask(request)).await
    }

    async fn get(self: &Arc<Self>, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        let site = self.site();
        let record = site.at_ours(Deed::Read, site.read(name)).await?;
        Ok(record.map(|record| record.lease))
    }

    async fn list(self: &Arc<Self>, page: &Page) -> Result<LeasePage, StoreError> {
        let site = self.site();
        site.at_ours(Deed::Read, site.list(page)).await
    }

    async fn examine(self: &Arc<Self>) -> Result<Vec<Finding>, StoreError> {
        self.site().examine().await
    }

    async fn watch(
        self: &Arc<Self>,
        thread: &OwnThread,
        scope: Scope,
        _interest: Interest,
    ) -> Result<Box<dyn Watch>, StoreError> {
        let lines = Arc::clone(self);
        // A client is made where it lives.
        let site = thread.run(async move { lines.site() }).await?;
        let watch = watch::open(site, thread, scope).await?;
        Ok(Box::new(watch))
    }
}

lease_purge!(MongoStore);

impl PurgeRequests for Lines {
    const NOTES_FIRST: bool = false;

    async fn purge(self: &Arc<Self>, request: &Purge) -> Result<Purged, StoreError> {
        let site = self.site();
        site.at_ours(Deed::Write, site.purge(request)).await
    }
}
