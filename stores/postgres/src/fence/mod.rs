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
use std::fmt;
use std::sync::Arc;
use tenure_core::{Leases, StoreError};
pub(crate) use tenure_remote::fence_subject as subject;
use tenure_remote::{OwnThread, RemoteFence, fence};

/// A mark per resource, in a schema of the user's own database, beside the data it protects:
/// [`claim`](tenure_core::Fence::claim) once per term, [`enter`](Self::enter) in every transaction that
/// writes.
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
pub struct PostgresFence(RemoteFence<Site>);

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
        Ok(Self(RemoteFence::new(Arc::new(site), Arc::new(thread), leases)))
    }

    /// The fence in the database and schema of the leases, on the connections of their store.
    #[must_use]
    pub fn beside(store: &PostgresStore) -> Self {
        Self(RemoteFence::new(
            Arc::clone(store.0.site()),
            Arc::clone(store.0.thread()),
            Leases::Here,
        ))
    }
}

impl fmt::Debug for PostgresFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresFence")
            .field("place", &self.0.site().place)
            .finish_non_exhaustive()
    }
}

fence!(
    /// Durable before it returns. Waits for transactions that have entered, 4 s at most, and before that,
    /// where four claims by this fence are under way, 5 s for its turn. A refusal takes no lock.
    PostgresFence
);
