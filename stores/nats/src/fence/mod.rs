//! The fence: a mark per resource, in the bucket that keeps the data.

mod claim;
mod look;
mod mark;
mod read;
mod refusals;
mod write;

use crate::connect::Servers;
use crate::keys::Keys;
use crate::link::Link;
use crate::store::SYSTEM;
use crate::url::StoreUrl;
use look::Found;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::{
    Answer, Bump, Certainty, Claimed, Cursor, Fault, Fence, FenceError, FencingToken, Leases, Mark, MarkPage,
    ResourceName, StoreError, Term,
};
pub(crate) use tenure_remote::fence_subject as subject;
use tenure_remote::{Deed, OwnThread, RemoteFence};

/// Most resources whose marks are remembered between two writes. When it is full, all are forgotten, and
/// looked for again.
const REMEMBERED_MAX: usize = 1_024;

/// A fence in a key-value bucket: [`claim`](Fence::claim) once per term, then [`get`](Self::get),
/// [`put`](Self::put) and [`delete`](Self::delete), which read and change a key of the same bucket.
///
/// Each write is one message, which the stream's leader stores only if the resource's mark is the very
/// revision that this term has claimed. A claim makes another revision: so no write of an older term is
/// stored after it, and what was stored before is there to be read, by [`get`](Self::get).
///
/// The mark guards what is written through the fence. Whoever writes to the bucket by other means is not
/// refused, and a key in another bucket cannot be guarded: a stream compares with its own messages only.
///
/// What it refuses is as durable as the data beside it: servers that lose confirmed writes lose the mark
/// together with the writes that came after it. A term whose claim was lost is refused from then on, as one
/// that has not claimed: a server that crashes ends its connections, and over a new one the mark is looked at
/// before anything is sent. Where in a **cluster** the servers with a copy lose their last writes (a majority
/// of them; of one copy: that one), and the server that the writer is connected to lives on, nothing tells
/// the writer: it may have one more write stored, if a later mark has the number of its own by then.
/// `sync_interval: always` excludes it.
///
/// ```no_run
/// use tenure_core::{Fence, Leases, ResourceName, Term};
/// use tenure_nats::NatsFence;
///
/// async fn settle(term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let fence = NatsFence::connect("nats://localhost/bank", Leases::Elsewhere).await?;
///     let ledger = ResourceName::new("ledger")?;
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, &term).await?;
///     let balance = fence.get(&ledger, &term, "balance.alice").await?;
///     println!("{balance:?}");
///     fence.put(&ledger, &term, "balance.alice", b"95").await?;
///     Ok(())
/// }
/// ```
pub struct NatsFence(RemoteFence<FenceSite>);

/// Where the marks are.
pub(crate) struct FenceSite {
    link: Link,
    keys: Keys,
    stream: String,
    /// The highest marks that were seen: what a write is tried upon before it is looked for again.
    remembered: Mutex<BTreeMap<ResourceName, Found>>,
}

impl NatsFence {
    /// The fence in the bucket of a store's URL, as [`NatsStore::connect`](crate::NatsStore::connect) takes
    /// it.
    ///
    /// Where the leases are elsewhere, a token from the future is known by the server's clock and not
    /// exactly.
    ///
    /// # Errors
    /// As [`NatsStore::connect`](crate::NatsStore::connect), and
    /// [`Fault::Unsupported`](tenure_core::Fault::Unsupported) for a server before NATS 2.11, which has no
    /// such comparison.
    pub async fn connect(url: &str, leases: Leases) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        let thread = OwnThread::start(SYSTEM)?;
        let site = thread.run(FenceSite::open(url)).await??;
        Ok(Self(RemoteFence::new(Arc::new(site), Arc::new(thread), leases)))
    }

    /// Runs `work` on the fence's thread, and counts a refusal where there is a mark to count beside.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, FenceError> {
        self.0
            .run(work)
            .await?
            .or_else(|refusal| self.0.refuse(refusal.beside.as_ref(), refusal.error))
    }
}

/// Why a fence did not do what was asked, and the mark that said so.
pub(crate) struct Refusal {
    error: FenceError,
    beside: Option<FencingToken>,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self {
            error: FenceError::Store(error),
            beside: None,
        }
    }
}

impl FenceSite {
    async fn open(url: StoreUrl) -> Result<Self, StoreError> {
        let (keys, replicas, place) = (Keys::new(&url.bucket), url.replicas, url.shown());
        let link = Link::new(Arc::new(Servers::new(url, place)));
        link.server_compares().await?;
        let info = link.bucket(&keys, replicas).await?;
        link.refuse_divided(&keys, &info).await?;
        Ok(Self {
            link,
            stream: keys.stream(),
            keys,
            remembered: Mutex::default(),
        })
    }

    fn remembered(&self) -> MutexGuard<'_, BTreeMap<ResourceName, Found>> {
        // A mark that was seen is tried, and no more: it may be of any moment.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, resource: &ResourceName, found: &Found) {
        let mut remembered = self.remembered();
        match remembered.get_mut(resource) {
            // A server that is behind does not take back what this one knows.
            Some(known) if found.is_older_than(known) => {}
            Some(known) => *known = found.clone(),
            None => {
                if remembered.len() >= REMEMBERED_MAX {
                    remembered.clear();
                }
                remembered.insert(resource.clone(), found.clone());
            }
        }
    }

    /// Whether a term may enter by the mark that was found. An older one than this term has claimed here
    /// refuses nobody: its server is behind, as a deposed leader that does not know it, or has lost the
    /// claim.
    fn rule(&self, resource: &ResourceName, term: &Term, found: &Found) -> Result<(), Refusal> {
        let Err(error) = found.entry(resource, term) else {
            return Ok(());
        };
        let has_claimed = |known: &Found| known.entry(resource, term).is_ok() && found.is_older_than(known);
        if self.remembered().get(resource).is_some_and(has_claimed) {
            let why = "the mark that is shown is older than the one that this term has claimed: the server is behind, or has \
                       lost the claim; try again, and if it stays so, claim again";
            return Err(Deed::Read
                .error(
                    Fault::Unreachable,
                    Certainty::NotApplied,
                    &subject(resource),
                    self.link.place(),
                    why,
                )
                .into());
        }
        Err(Refusal {
            error,
            beside: found.token(),
        })
    }
}

impl fmt::Debug for NatsFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the connections: their options hold the password.
        f.debug_struct("NatsFence")
            .field("place", &self.0.site().link.place())
            .finish_non_exhaustive()
    }
}

impl Fence for NatsFence {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        let (site, resource, term) = (Arc::clone(self.0.site()), resource.clone(), term.clone());
        let leases = self.0.leases();
        Box::pin(self.run(async move { site.raise(leases, &resource, &term).await }))
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        let (site, resource, term) = (Arc::clone(self.0.site()), resource.clone(), term.clone());
        Box::pin(self.run(async move { site.look_for(&resource, &term).await.map(drop) }))
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        let (site, resource) = (Arc::clone(self.0.site()), resource.clone());
        Box::pin(self.run(async move { Ok(site.shown(&resource).await?) }))
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        let (site, after) = (Arc::clone(self.0.site()), after.cloned());
        Box::pin(self.run(async move { Ok(site.marks(after.as_ref()).await?) }))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        let (site, leases, bump) = (Arc::clone(self.0.site()), self.0.leases(), bump.clone());
        Box::pin(self.run(async move { Ok(site.lift(leases, &bump).await?) }))
    }

    fn count_refusal(&self, refusal: &FenceError) {
        self.0.count_refusal(refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        self.0.note_refusals()
    }
}
