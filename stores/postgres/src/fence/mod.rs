//! The fence for data that lives in PostgreSQL: old terms are refused inside the transaction that writes.

mod claim;
mod enter;
mod marks;
mod refusals;
mod table;

use crate::SYSTEM;
use crate::connect::{bounded, site};
use crate::site::Site;
use crate::store::PostgresStore;
use crate::url::StoreUrl;
use marks::{Kept, ruled};
use refusals::Beside;
use std::fmt;
use std::sync::Arc;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, Leases, Mark, MarkPage, ResourceName, StoreError, Term,
};
use tenure_remote::{Noter, OwnThread};

/// A mark per resource, in a schema of the user's own database, beside the data it protects:
/// [`claim`](Fence::claim) once per term, [`enter`](Self::enter) in every transaction that writes.
///
/// ```no_run
/// use tenure_core::{Fence, Leases, ResourceName, Term};
/// use tenure_postgres::{PostgresFence, tokio_postgres::Client};
///
/// async fn settle(client: &mut Client, term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let fence = PostgresFence::connect("postgres://app@db1/bank", Leases::Here).await?;
///     let ledger = ResourceName::new("ledger")?;
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, &term).await?;
///
///     let transaction = client.transaction().await?;
///     fence.enter(&transaction, &ledger, &term).await?; // refuses a stale term
///     transaction.execute("UPDATE account SET cents = cents + 5 WHERE id = 1", &[]).await?;
///     transaction.commit().await?;
///     Ok(())
/// }
/// ```
///
/// Entering locks the row of the mark, shared: transactions of one term run side by side, and a claim of a
/// later term waits for every one that has entered, 4 s at most, and may then be made again. While it waits,
/// none enters anew. In a transaction that began to read before a claim, at `REPEATABLE READ` or above,
/// entering fails.
///
/// Other drivers and languages call the function `enter(resource, lease, token)` of the schema, first in each
/// transaction. Writers that know nothing of Tenure: [`guard`](Self::guard).
///
/// Its own requests run on a thread of its own, or of the store it belongs to. Refusals are counted beside
/// the mark, at most once a second.
#[derive(Clone)]
pub struct PostgresFence {
    site: Arc<Site>,
    thread: Arc<OwnThread>,
    noter: Arc<Noter<Beside>>,
    leases: Leases,
}

impl PostgresFence {
    /// The fence in the database and schema of a URL, as [`PostgresStore::connect`] takes it.
    ///
    /// Where the leases are elsewhere, a token from the future is known by this server's clock and not
    /// exactly, and what a lease of the same name has been granted here, perhaps before the leases went
    /// elsewhere, says nothing. Where there is such a record, the set-up must know of this: one from before
    /// is refused with the way out.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn connect(url: &str, leases: Leases) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        let thread = OwnThread::start(SYSTEM)?;
        let place = url.place();
        let opening = async {
            let mut site = site(url)?;
            site.recognise().await?;
            let dial = Arc::clone(&site.dial);
            tokio::try_join!(dial.refuse_strangers(), site.check_schema())?;
            Ok(site)
        };
        let site = thread.run(bounded(place, opening)).await??;
        Ok(Self::over(Arc::new(site), Arc::new(thread), leases))
    }

    /// The fence in the database and schema of the leases, on the connections of their store.
    #[must_use]
    pub fn beside(store: &PostgresStore) -> Self {
        Self::over(
            Arc::clone(store.0.site()),
            Arc::clone(store.0.thread()),
            Leases::Here,
        )
    }

    fn over(site: Arc<Site>, thread: Arc<OwnThread>, leases: Leases) -> Self {
        Self {
            noter: Noter::new(Beside(Arc::clone(&site))),
            site,
            thread,
            leases,
        }
    }

    /// Counts a refusal beside the mark that was found; where there is none, there is nothing to count
    /// beside.
    fn refuse<T, M>(&self, found: Option<&M>, error: FenceError) -> Result<T, FenceError> {
        if found.is_some() {
            self.noter.count(&self.thread, &error);
        }
        Err(error)
    }

    /// Runs a look or a change at the site, on its thread.
    async fn at_site<T: Send + 'static, W>(&self, work: impl FnOnce(Arc<Site>) -> W) -> Result<T, FenceError>
    where
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let done = self.thread.run(work(Arc::clone(&self.site))).await;
        Ok(done??)
    }

    async fn find(&self, resource: &ResourceName) -> Result<Option<Kept>, FenceError> {
        let resource = resource.clone();
        self.at_site(|site| async move { site.kept(&resource).await })
            .await
    }
}

impl fmt::Debug for PostgresFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresFence")
            .field("place", &self.site.place)
            .finish_non_exhaustive()
    }
}

impl Fence for PostgresFence {
    /// Durable before it returns. Waits for transactions that have entered, 4 s at most, and before that, where
    /// four claims by this fence are under way, 5 s for its turn. A refusal takes no lock.
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(async move {
            let (leases, owned, asked) = (self.leases, resource.clone(), term.clone());
            let found = self
                .at_site(|site| async move { site.claim(leases, &owned, &asked).await })
                .await?;
            found
                .ruled(resource, term)
                .or_else(|error| self.refuse(found.mark.as_ref(), error))
        })
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let found = self.find(resource).await?;
            ruled(resource, term, found.as_ref()).or_else(|error| self.refuse(found.as_ref(), error))
        })
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        Box::pin(async { Ok(self.find(resource).await?.map(|kept| kept.mark)) })
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        let after = after.cloned();
        Box::pin(self.at_site(|site| async move { site.marks(after.as_ref()).await }))
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        let (leases, bump) = (self.leases, bump.clone());
        Box::pin(self.at_site(move |site| async move { site.bump(leases, &bump).await }))
    }

    fn count_refusal(&self, refusal: &FenceError) {
        self.noter.count(&self.thread, refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        let noter = Arc::clone(&self.noter);
        let noting = self.thread.run(async move { noter.note().await });
        // The thread gives up only when the fence is dropped.
        Box::pin(async move { drop(noting.await) })
    }
}

fn subject(resource: &ResourceName) -> String {
    format!("fence \"{resource}\"")
}
