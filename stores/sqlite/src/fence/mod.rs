//! The fence for data that lives in SQLite: old terms are refused inside the transaction that writes.

mod connection;
mod enter;
mod mark;
mod opening;
mod refusals;
mod table;

pub use table::FencedTable;

use crate::insistence::insistently;
use crate::log::Log;
use crate::options::SqliteOptions;
use crate::patience::{Patience, patiently};
use crate::seat::Seat;
use crate::transaction;
use crate::trouble::Trouble;
use connection::{Marks, reconnect_marks};
pub(crate) use mark::FENCE_TABLE;
use mark::ruled;
use refusals::Noter;
use rusqlite::Connection;
use std::sync::Arc;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, Leases, Mark, MarkPage, ResourceName, Term,
};

/// A mark per resource, in a table of the user's own database file, beside the data it protects.
///
/// ```
/// # use tenure_core::{Fence, FencingToken, LeaseName, Leases, ResourceName, Term};
/// # use tenure_sqlite::SqliteFence;
/// # use rusqlite::{Connection, TransactionBehavior};
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let scratch = tempfile::tempdir()?;
/// # let path = scratch.path().join("ledger.db");
/// let mut connection = Connection::open(&path)?;
/// SqliteFence::install(&connection)?; // once, with the other tables
/// let fence = SqliteFence::new(&path, Leases::Elsewhere)?;
/// let ledger = ResourceName::new("ledger")?;
/// # let term = Term::new(LeaseName::new("nightly")?, FencingToken::new(7)?);
/// // `term` is the leader's: leadership.term(). First claim, then read what will be changed.
/// fence.claim(&ledger, &term).await?;
/// let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// fence.enter(&transaction, &ledger, &term)?; // refuses a stale term
/// // … the writes …
/// transaction.commit()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The guarantee rests on SQLite's single writer: [`enter`](Self::enter) writes, so it holds the file's write
/// lock until the transaction ends, and a claim of a later term waits for it. A transaction that began to
/// read before a claim, and enters after it, fails. The database may be in any journal mode.
///
/// # To ensure correctness
/// - One SQLite per process opens the database, and nothing else in a process that writes it opens and closes
///   the database or its `-shm`: the kernel would take away every lock that the process has on it, a claim
///   would not wait for its transaction, and one commit would be lost without a word. Back up by `VACUUM
///   INTO`, by SQLite's backup interface, or in another process.
/// - In the leases' own file, transactions are short beside a tenth of the ttl: each keeps every renewal out
///   while it lasts. Else give the data a file of their own.
///
/// Refusals are counted in the table and logged, at most once a second each, by a thread that lives only
/// while there are some. In the leases' own file ([`SqliteStore`](crate::SqliteStore)) a token from the
/// future is known exactly, elsewhere by the wall clock to a day. Writers that know nothing of Tenure:
/// [`FencedTable`].
pub struct SqliteFence {
    shown: String,
    patience: Patience,
    /// As SQLite has opened it: its path is absolute, so that it goes on to mean this file whatever the
    /// process's directory is.
    file: SqliteOptions,
    seat: Arc<Seat<Marks>>,
    noter: Noter,
    leases: Leases,
}

impl SqliteFence {
    /// Makes the table `tenure_fence` where it is missing. Run it once, with the user's other tables.
    ///
    /// # Errors
    /// [`FenceError::Store`]; nothing was changed.
    pub fn install(connection: &Connection) -> Result<(), FenceError> {
        connection.execute_batch(mark::TABLE).map_err(|error| {
            let path = connection.path().unwrap_or_default();
            FenceError::Store(Trouble::Statement(error).into_error("the table of the fence", path))
        })
    }

    fn refuse<T>(&self, error: FenceError) -> Result<T, FenceError> {
        self.noter.count(&error);
        Err(error)
    }

    fn with<T>(&self, look: impl FnOnce(&Connection) -> Result<T, Trouble>) -> Result<T, Trouble> {
        look(&self.seat.take(|| reconnect_marks(&self.file))?.connection)
    }

    /// Writes, and answers what has to be on the disk before that counts: see [`settle`](Self::settle).
    ///
    /// Where a sync has failed, what others had written before it, and left to a later sync, may be lost as
    /// well, and a power cut would end the log before a mark that is written behind it: so the log is begun
    /// anew first.
    async fn write<T: Send + 'static>(
        &self,
        resource: &ResourceName,
        work: impl Fn(&Connection) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<(T, Option<Arc<Log>>), FenceError> {
        let (seat, file) = (Arc::clone(&self.seat), self.file.clone());
        let write = move || {
            let marks = seat.take(|| reconnect_marks(&file))?;
            if let Some(log) = &marks.log {
                log.mend(&marks.connection)?;
            }
            let written = transaction::write(&marks.connection, &work)?;
            Ok((written, marks.log.clone()))
        };
        let subject = || format!("fence \"{resource}\"");
        let log = || self.seat.take(|| reconnect_marks(&self.file)).ok()?.log.clone();
        Ok(insistently(&self.patience, subject, &self.shown, log, write).await?)
    }

    /// Has what was written on the disk when it returns. Nothing of the file is locked meanwhile: a disk that
    /// stalls keeps nobody from writing, as the holders of leases in the same file must.
    async fn settle(&self, resource: &ResourceName, log: Option<Arc<Log>>) -> Result<(), FenceError> {
        // With a rollback journal the commit has waited for the disk.
        let Some(log) = log else { return Ok(()) };
        let settled = match log.sync_here() {
            Some(synced) => synced,
            None => log.sync_elsewhere().await,
        };
        settled.map_err(|trouble| self.failure(resource, trouble))
    }

    fn failure(&self, resource: &ResourceName, trouble: Trouble) -> FenceError {
        FenceError::Store(trouble.into_error(&format!("fence \"{resource}\""), &self.shown))
    }

    async fn patiently<T: Send>(
        &self,
        resource: &ResourceName,
        step: impl Fn() -> Result<T, Trouble> + Send + Sync,
    ) -> Result<T, FenceError> {
        let subject = || format!("fence \"{resource}\"");
        Ok(patiently(&self.patience, subject, &self.shown, step).await?)
    }

    async fn kept(&self, resource: &ResourceName) -> Result<Option<mark::Kept>, FenceError> {
        self.patiently(resource, || {
            self.with(|connection| mark::kept(connection, resource))
        })
        .await
    }
}

impl std::fmt::Debug for SqliteFence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteFence")
            .field("file", &self.shown)
            .finish_non_exhaustive()
    }
}

impl Fence for SqliteFence {
    /// On disk before it returns. Waits, within bounds, for a transaction that has entered. A refusal takes
    /// no lock.
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        Box::pin(async move {
            let leases = self.leases;
            let look = |connection: &Connection| mark::rule(connection, leases, resource, term);
            if let Err(refused) = self.patiently(resource, || self.with(look)).await? {
                return self.refuse(refused);
            }
            let (claimed, log) = self
                .write(resource, {
                    let (resource, term) = (resource.clone(), term.clone());
                    move |connection| mark::claim(connection, leases, &resource, &term)
                })
                .await?;
            if claimed.is_ok() {
                // Also one that was there: whoever has written it may be waiting for the disk, or have waited
                // in vain.
                self.settle(resource, log).await?;
            }
            claimed.or_else(|refused| self.refuse(refused))
        })
    }

    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        Box::pin(async move {
            let kept = self.kept(resource).await?;
            ruled(resource, term, kept.as_ref()).or_else(|refused| self.refuse(refused))
        })
    }

    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        Box::pin(async move { Ok(self.kept(resource).await?.map(|kept| kept.mark)) })
    }

    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        Box::pin(async move {
            let subject = || "the fence".to_owned();
            let look = || self.with(|connection| mark::marks(connection, after));
            Ok(patiently(&self.patience, subject, &self.shown, look).await?)
        })
    }

    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        Box::pin(async move {
            let (leases, asked) = (self.leases, bump.clone());
            let lift = move |connection: &Connection| mark::bump(connection, leases, &asked);
            let (mark, log) = self.write(&bump.resource, lift).await?;
            self.settle(&bump.resource, log).await?;
            Ok(mark)
        })
    }

    fn count_refusal(&self, refusal: &FenceError) {
        self.noter.count(refusal);
    }

    fn note_refusals(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::SqliteFence;
    use crate::{SqliteOptions, SqliteStore};
    use std::time::Duration;
    use tenure_conformance::asking::{granted, renewal, request, seconds};
    use tenure_core::{Claimed, Fence, LeaseName, LeaseStore, Leases, Renewed, ResourceName, Term};

    /// In the leases' own file, where each needs the lock of the other.
    #[test]
    fn a_disk_that_stalls_while_a_term_claims_keeps_no_term_from_being_renewed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(&path).unwrap();
            let fence = SqliteFence::create(&SqliteOptions::new(&path), Leases::Here).unwrap();
            let held = request("held", "a", seconds(300));
            let grant = granted(store.acquire(&held).await.unwrap());
            let term = Term::new(LeaseName::new("held").unwrap(), grant.token);
            let ledger = ResourceName::new("ledger").unwrap();
            let log = fence
                .seat
                .take(|| unreachable!())
                .ok()
                .unwrap()
                .log
                .clone()
                .unwrap();
            let stalled = log.stall();
            let mut claiming = Box::pin(fence.claim(&ledger, &term));
            // Twice: what is there already is not on the disk yet, either.
            for _ in 0..2 {
                let early = tokio::time::timeout(Duration::from_millis(200), &mut claiming).await;
                assert!(early.is_err(), "the disk was not waited for: {early:?}");
                claiming = Box::pin(fence.claim(&ledger, &term));
            }
            let renewed = store.renew(&[renewal(&held, grant.token)]).await.remove(0);
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
            drop(stalled);
            assert_eq!(claiming.await.unwrap(), Claimed::Already);
        });
    }
}
