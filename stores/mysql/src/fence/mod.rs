//! The fence for data that lives in MySQL or MariaDB: old terms are refused inside the transaction that
//! writes.

mod claim;
mod enter;
mod marks;
mod refusals;
mod table;

use crate::SYSTEM;
use crate::connect::{bounded, open};
use crate::site::Site;
use crate::store::MysqlStore;
use crate::url::StoreUrl;
use std::fmt;
use std::sync::Arc;
use tenure_core::{Leases, StoreError};
pub(crate) use tenure_remote::fence_subject as subject;
use tenure_remote::{OwnThread, RemoteFence, fence};

/// A mark per resource, in the user's own server, beside the data it protects:
/// [`claim`](tenure_core::Fence::claim) once per term, [`enter`](Self::enter) in every transaction that
/// writes.
///
/// ```no_run
/// use tenure_core::{Fence, Leases, ResourceName, Term};
/// use tenure_mysql::{MysqlFence, mysql_async::{Conn, TxOpts, prelude::Queryable}};
///
/// async fn settle(conn: &mut Conn, term: Term) -> Result<(), Box<dyn std::error::Error>> {
///     let fence = MysqlFence::connect("mysql://app@db1/bank", Leases::Here).await?;
///     let ledger = ResourceName::new("ledger")?;
///     // Before the first read of what this term will change.
///     fence.claim(&ledger, &term).await?;
///
///     let mut transaction = conn.start_transaction(TxOpts::default()).await?;
///     fence.enter(&mut transaction, &ledger, &term).await?; // refuses a stale term
///     transaction.query_drop("UPDATE account SET cents = cents + 5 WHERE id = 1").await?;
///     fence.commit(transaction, &ledger).await?; // not where the transaction that entered has ended before
///     Ok(())
/// }
/// ```
///
/// Entering locks the row of the mark, shared: transactions of one term run side by side, and a claim of a
/// later term waits for every one that has entered, 3 s or, by MySQL, 4 s at most, and may then be made
/// again. In a transaction that began to read before a claim, at `REPEATABLE READ`, entering fails. The data
/// may be in another database of the same server.
///
/// Other drivers and languages call the procedure `tenure_enter_1(resource, lease, token)`, first in each
/// transaction and before any savepoint. With `SAVEPOINT entered` behind it, and `RELEASE SAVEPOINT entered`
/// before the `COMMIT`, they notice as [`commit`](Self::commit) does. Writers that know nothing of Tenure:
/// [`guard`](Self::guard).
///
/// Its own requests run on a thread of its own, or of the store it belongs to. Refusals are counted beside
/// the mark, at most once a second.
#[derive(Clone)]
pub struct MysqlFence(RemoteFence<Site>);

impl MysqlFence {
    /// The fence in the database of a URL, as [`MysqlStore::connect`] takes it.
    ///
    /// Where the leases are elsewhere, a token from the future is known by this server's clock and not
    /// exactly, and what a lease of the same name has been granted here, perhaps before the leases went
    /// elsewhere, says nothing. Where there is such a record, the set-up must know of this: one from before
    /// is refused with the way out.
    ///
    /// # Errors
    /// As [`MysqlStore::connect`].
    pub async fn connect(url: &str, leases: Leases) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        let thread = OwnThread::start(SYSTEM)?;
        let site = thread.run(bounded(url.place(), open(url))).await??;
        Ok(Self(RemoteFence::new(Arc::new(site), Arc::new(thread), leases)))
    }

    /// The fence in the database of the leases, on the connections of their store.
    #[must_use]
    pub fn beside(store: &MysqlStore) -> Self {
        Self(RemoteFence::new(
            Arc::clone(store.0.site()),
            Arc::clone(store.0.thread()),
            Leases::Here,
        ))
    }
}

impl fmt::Debug for MysqlFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlFence")
            .field("place", &self.0.site().place())
            .finish_non_exhaustive()
    }
}

fence!(
    /// Durable before it returns; but [`Claimed::Already`](tenure_core::Claimed::Already) may come while the
    /// term's first claim is still on its way to the disk, where it is with the next commit of the server: so
    /// with whatever is written behind it.
    ///
    /// Waits for transactions that have entered, 3 s or, by MySQL, 4 s at most, and before that, where six
    /// claims by this fence are under way, 5 s for its turn. A refusal takes no lock.
    MysqlFence
);
