//! The fence: a mark per resource, in the cluster that keeps the data.

mod claim;
mod look;
pub(crate) mod mark;
mod write;

pub use write::{FenceCondition, Fenced, FencedTransaction};

use crate::site::{ROUNDS_MAX, Site, transact};
use crate::store::SYSTEM;
use crate::url::StoreUrl;
use crate::wire::kv::{Compare, RequestOp, TxnRequest};
use mark::{decided, subject};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, FencingToken, Leases, Mark, MarkPage, ResourceName,
    StoreError, Term,
};
use tenure_remote::{Deed, Notes, OwnThread, RemoteFence, pause_between_rounds};

/// A fence in etcd: [`claim`](Fence::claim) once per term, then [`write`](Self::write), whose transaction
/// compares the mark.
///
/// A transaction is one step of the cluster, so no write of an older term can be under way when a claim is
/// made: what was admitted before is there to be read, what comes later is refused. Programs that use another
/// client add [`condition`](Self::condition) to their transactions.
///
/// ```no_run
/// use tenure_core::{Fence, Leases, ResourceName, Term};
/// use tenure_etcd::{EtcdFence, FencedTransaction};
///
/// async fn settle(term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let fence = EtcdFence::connect("etcd://localhost/bank", Leases::Here).await?;
///     let ledger = ResourceName::new("ledger")?;
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, &term).await?;
///     let transaction = FencedTransaction::new()
///         .put("balance/alice", "95")
///         .put("balance/bob", "105");
///     fence.write(&ledger, &term, &transaction).await?;
///     Ok(())
/// }
/// ```
pub struct EtcdFence(RemoteFence<Site>);

/// What the mark says of a term.
enum Ruled<T> {
    Admitted(T),
    Refused {
        /// The mark that refused it, where there is one.
        mark: Option<FencingToken>,
        error: FenceError,
    },
}

impl<T> Ruled<T> {
    fn refused(mark: Option<FencingToken>, error: FenceError) -> Self {
        Self::Refused { mark, error }
    }
}

impl EtcdFence {
    /// The fence in the cluster of a store's URL. Nothing is sent before its first use, which fails where
    /// members say that they are of different clusters: each would have marks of its own.
    ///
    /// Where the leases are elsewhere, a token from the future is known by this machine's clock and not
    /// exactly, and a bump goes by that clock, or by counting, and not by this cluster's revision.
    ///
    /// # Errors
    /// [`Fault::Invalid`](tenure_core::Fault::Invalid) for a URL that cannot be read, or a file that it
    /// names; without the password.
    pub async fn connect(url: &str, leases: Leases) -> Result<Self, StoreError> {
        let site = Arc::new(Site::new(StoreUrl::parse(url)?)?);
        let thread = Arc::new(OwnThread::start(SYSTEM)?);
        Ok(Self(RemoteFence::new(site, thread, leases)))
    }

    /// Makes a transaction, if `term` holds the mark of `resource`.
    ///
    /// # Errors
    /// [`FenceError::Stale`], [`FenceError::Unclaimed`] or [`FenceError::Foreign`]: nothing was written, and
    /// the refusal is counted. [`FenceError::Store`] if the cluster failed.
    pub async fn write(
        &self,
        resource: &ResourceName,
        term: &Term,
        transaction: &FencedTransaction,
    ) -> Result<Fenced, FenceError> {
        let (site, resource, term, transaction) = (
            Arc::clone(self.0.site()),
            resource.clone(),
            term.clone(),
            transaction.clone(),
        );
        let writing = async move { site.write(&resource, &term, &transaction).await };
        self.ruled(writing).await
    }

    /// What a transaction that is made with another client must compare to be behind the fence, for as long
    /// as `term` is not superseded. Sends nothing.
    #[must_use]
    pub fn condition(&self, resource: &ResourceName, term: &Term) -> FenceCondition {
        self.0.site().condition(resource, term)
    }

    /// Runs on the fence's thread.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, FenceError> {
        Ok(self.0.run(work).await??)
    }

    /// Runs on the fence's thread, and counts a refusal where there is a mark to count it beside.
    async fn ruled<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<Ruled<T>, StoreError>> + Send + 'static,
    ) -> Result<T, FenceError> {
        match self.run(work).await? {
            Ruled::Admitted(answer) => Ok(answer),
            Ruled::Refused { mark, error } => self.0.refuse(mark.as_ref(), error),
        }
    }
}

impl fmt::Debug for EtcdFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the members: they hold the password.
        f.debug_struct("EtcdFence")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

impl Fence for EtcdFence {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        let (site, leases, resource, term) = (
            Arc::clone(self.0.site()),
            self.0.leases(),
            resource.clone(),
            term.clone(),
        );
        Box::pin(self.ruled(async move { site.claim(leases, &resource, &term).await }))
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        let (site, resource, term) = (Arc::clone(self.0.site()), resource.clone(), term.clone());
        Box::pin(self.ruled(async move {
            let found = site.look(&resource, None).await?;
            Ok(match decided(&resource, &term, found.mark.as_ref()) {
                Ok(()) => Ruled::Admitted(()),
                Err(error) => Ruled::refused(found.token(), error),
            })
        }))
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        let (site, resource) = (Arc::clone(self.0.site()), resource.clone());
        Box::pin(self.run(async move { Ok(site.look(&resource, None).await?.shown(&resource)) }))
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        let (site, after) = (Arc::clone(self.0.site()), after.cloned());
        Box::pin(self.run(async move { site.marks(after.as_ref()).await }))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        let (site, leases, bump) = (Arc::clone(self.0.site()), self.0.leases(), bump.clone());
        Box::pin(self.run(async move { site.bump(leases, &bump).await }))
    }

    fn count_refusal(&self, refusal: &FenceError) {
        self.0.count_refusal(refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        self.0.note_refusals()
    }
}

impl Notes for Site {
    async fn note(&self, resource: &ResourceName, count: u64, last: FencingToken) -> Result<(), String> {
        for _round in 0..ROUNDS_MAX {
            let (written, mut counted) = self.count(resource).await.map_err(|error| error.message)?;
            counted.refused = counted.refused.saturating_add(count);
            counted.last = Some(last);
            let key = self.keys.refusals(resource);
            let request = TxnRequest {
                compare: vec![Compare::written_at(&key, written)],
                success: vec![RequestOp::put(key, counted.encode(), 0)],
                failure: Vec::new(),
            };
            match transact(&self.requests, &request).await {
                Ok(answer) if answer.succeeded => return Ok(()),
                Ok(_changed) => pause_between_rounds().await,
                Err(failure) => {
                    return Err(failure
                        .error(Deed::Write, &subject(resource), &self.place)
                        .message);
                }
            }
        }
        Err(format!("the count changed {ROUNDS_MAX} times under the request"))
    }
}
