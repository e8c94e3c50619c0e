//! Entering the user's transactions.

use super::SqliteFence;
use super::mark::{self, ruled};
use crate::files;
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::{ErrorCode, Transaction, ffi, params};
use std::path::Path;
use tenure_core::{Fault, FenceError, ResourceName, StoreError, Term};

impl SqliteFence {
    /// Admits a term into the user's own transaction, or refuses it: to be called in the transaction that
    /// writes, before it commits, best as its first statement.
    ///
    /// # Guarantee
    /// If this admits and the transaction commits, then no later term had claimed `resource` when it
    /// committed. It takes the write lock of the file, so begin with `BEGIN IMMEDIATE`
    /// ([`TransactionBehavior::Immediate`](rusqlite::TransactionBehavior::Immediate)) and with a busy timeout
    /// of your own; in a deferred transaction that has read before, a claim in between makes this fail.
    ///
    /// That transaction must be the one that commits. Where SQLite itself rolls it back (`OR ROLLBACK`,
    /// `RAISE(ROLLBACK)`, a full disk, an interrupt), each statement that follows commits by itself and is
    /// not fenced; the commit at the end fails. Roll back after any error but one of a constraint, or guard
    /// the table ([`FencedTable`](crate::FencedTable)).
    ///
    /// # Errors
    /// Roll back after any of them:
    /// - [`FenceError::Stale`]: a later term has claimed; stop the work;
    /// - [`FenceError::Unclaimed`]: this term has not claimed;
    /// - [`FenceError::Foreign`]: the resource belongs to another lease;
    /// - [`FenceError::Store`]: [`Fault::Busy`] if the file is locked, or the transaction had read before
    ///   somebody else wrote: begin it again. [`Fault::Invalid`] for a transaction in another file, and
    ///   [`Fault::Unreachable`] for one in a file that stood at the path before: open the connection anew.
    pub fn enter(
        &self,
        transaction: &Transaction<'_>,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<(), FenceError> {
        self.check_file(transaction, resource)?;
        match enter(transaction, resource, term) {
            Ok(Ok(())) => self.check_lock(transaction, resource, term),
            Ok(Err(refused)) => self.refuse(refused),
            Err(error) if is_stale_snapshot(&error) => {
                // What the transaction has read is older than somebody's write. If that write was a claim,
                // say so: beginning again would be in vain.
                if let Ok(kept) = self.with(|connection| mark::kept(connection, resource)) {
                    ruled(resource, term, kept.as_ref()).or_else(|refused| self.refuse(refused))?;
                }
                Err(FenceError::Store(StoreError::not_applied(
                    Fault::Busy,
                    format!(
                        "fence \"{resource}\" in {}: somebody wrote after this transaction had begun to read; \
                         roll it back and begin again with BEGIN IMMEDIATE",
                        self.shown
                    ),
                )))
            }
            Err(error) => Err(self.failure(resource, Trouble::Statement(error))),
        }
    }

    /// Whether the transaction is in this file, and the file still the one that stands at its path: a
    /// transaction whose log was removed neither sees a claim nor keeps one waiting.
    fn check_file(&self, transaction: &Transaction<'_>, resource: &ResourceName) -> Result<(), FenceError> {
        if transaction.path().map(Path::new) != Some(&self.file.path) {
            return Err(FenceError::Store(StoreError::not_applied(
                Fault::Invalid,
                format!(
                    "the transaction is in {}, the fence in {}: they must be in one file",
                    transaction.path().unwrap_or("another database"),
                    self.shown
                ),
            )));
        }
        self.with(|_| Ok(())).map_err(|trouble| {
            // It may be this very connection whose log was removed: closed as the last one, it would write
            // what others have gone on without over what they have written since.
            files::abandon(transaction);
            self.failure(resource, trouble)
        })
    }

    /// Whether the write lock that the transaction has by now is that of the file at the path. One that was
    /// moved, with its log or with its folder, is not seen to be gone by whoever has it open, and no claim is
    /// made in it any more.
    ///
    /// Two looks, and none waits. Another program may have the lock of the file at the path at this very
    /// moment, and then the mark there tells, if a later term has claimed it. A look that is kept from
    /// reading is so by a lock as well.
    fn check_lock(
        &self,
        transaction: &Transaction<'_>,
        resource: &ResourceName,
        term: &Term,
    ) -> Result<(), FenceError> {
        let looked = self.with(|connection| {
            let kept = unless_locked(mark::kept(connection, resource))?;
            let lock = unless_locked(transaction::write(connection, |_| Ok(())))?;
            Ok((kept, lock))
        });
        let (kept, lock) = looked.map_err(|trouble| {
            files::abandon(transaction);
            self.failure(resource, trouble)
        })?;
        let ruled = kept.map_or(Ok(()), |kept| ruled(resource, term, kept.as_ref()));
        if lock.is_some() || ruled.is_err() {
            files::abandon(transaction);
        }
        ruled.or_else(|refused| self.refuse(refused))?;
        match lock {
            None => Ok(()),
            Some(()) => Err(FenceError::Store(StoreError::not_applied(
                Fault::Unreachable,
                format!(
                    "fence \"{resource}\": the transaction is not in the file that stands at {} now, but in one that stood \
                     there before (it was moved or replaced); roll it back, and open that connection anew",
                    self.shown
                ),
            ))),
        }
    }
}

/// `None` where a lock was in the way.
fn unless_locked<T>(looked: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match looked {
        Err(trouble) if trouble.is_locked() => Ok(None),
        looked => looked.map(Some),
    }
}

/// Writes the row, whatever its mark: an `UPDATE` begins a write even where it finds nothing to change, so
/// from here on no claim can come between the check and the commit.
fn enter(
    transaction: &Transaction<'_>,
    resource: &ResourceName,
    term: &Term,
) -> Result<Result<(), FenceError>, rusqlite::Error> {
    let admitted = transaction
        .prepare_cached(
            "UPDATE tenure_fence SET token = token WHERE resource = ?1 AND token = ?2 AND lease = ?3",
        )?
        .execute(params![
            resource.as_str(),
            term.token.signed(),
            term.lease.as_str()
        ])?;
    if admitted == 1 {
        return Ok(Ok(()));
    }
    match mark::kept(transaction, resource) {
        Ok(kept) => Ok(ruled(resource, term, kept.as_ref())),
        Err(Trouble::Statement(error)) => Err(error),
        Err(trouble) => Ok(Err(FenceError::Store(
            trouble.into_error(&format!("fence \"{resource}\""), "this database"),
        ))),
    }
}

fn is_stale_snapshot(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
        && error
            .sqlite_error()
            .is_some_and(|error| error.extended_code == ffi::SQLITE_BUSY_SNAPSHOT)
}
