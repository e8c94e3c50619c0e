//! What can go wrong in SQLite, and what the contract calls it.

use crate::fence::FENCE_TABLE;
use crate::record::RecordFault;
use rusqlite::{Error, ErrorCode};
use std::io;
use tenure_core::{Certainty, Fault, FencingToken, StoreError};

/// A failed step, before it is put into words.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Before or inside a transaction, which was rolled back: nothing was changed.
    Statement(Error),
    /// At the commit.
    Commit(Error),
    /// After the commit: what was committed is in the log, and the disk may not have it.
    Unsynced(io::Error),
    /// The log could not be put on the disk before, and is read: nothing was changed.
    StillUnsynced,
    /// A row that cannot be understood.
    Record(RecordFault),
    /// The token of the record is the largest there is.
    TokensUsedUp,
    /// This process has another log of the file open than stands at its path. A connection that is just being
    /// closed or opened may look so for a moment.
    Parted,
    /// Already in words.
    Told(StoreError),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Statement(error)
    }
}

impl From<RecordFault> for Trouble {
    fn from(fault: RecordFault) -> Self {
        Self::Record(fault)
    }
}

impl Trouble {
    /// Whether another process, or another connection of this one, stood in the way, so that trying again
    /// soon is worth while.
    pub(crate) fn is_locked(&self) -> bool {
        match self {
            Self::Statement(error) | Self::Commit(error) => fault(error) == Fault::Busy,
            Self::Parted | Self::StillUnsynced => true,
            Self::Unsynced(_) | Self::Record(_) | Self::TokensUsedUp | Self::Told(_) => false,
        }
    }

    /// In words, for the lease (or whatever `subject` says) in the file `path`.
    pub(crate) fn into_error(self, subject: &str, path: &str) -> StoreError {
        match self {
            Self::Statement(error) => {
                let fault = fault(&error);
                StoreError::not_applied(fault, words(subject, path, fault, &error))
            }
            Self::Commit(error) => {
                let fault = fault(&error);
                StoreError {
                    fault,
                    certainty: commit_certainty(fault),
                    message: words(subject, path, fault, &error),
                }
            }
            Self::Unsynced(error) => StoreError::unknown(
                Fault::Internal,
                format!(
                    "{subject} in {path}: the disk did not take it ({error}); see the disk and the kernel's log"
                ),
            ),
            Self::StillUnsynced => StoreError::not_applied(
                Fault::Busy,
                format!(
                    "{subject} in {path}: the disk did not take what was written before, and the log cannot be begun anew \
                     while somebody reads it; see the disk and the kernel's log"
                ),
            ),
            Self::Record(RecordFault(why)) => StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "{subject} in {path} has a record that Tenure did not write: {why}; it was left as it \
                     is; look at it with: sqlite3 '{path}' \"select * from lease\", then correct or delete \
                     that row"
                ),
            ),
            Self::TokensUsedUp => StoreError::not_applied(
                Fault::Unreadable,
                format!(
                    "{subject} in {path} has the token {}, the largest there is; the record was left as it is; correct or \
                     delete that row",
                    FencingToken::MAX
                ),
            ),
            Self::Parted => StoreError::not_applied(
                Fault::Unreachable,
                format!(
                    "{subject}: the log of {path} (-wal, -shm) was removed or replaced while it was in use, and this \
                     process has the old one open; never remove them; close the process's other connections to the \
                     file, or restart it"
                ),
            ),
            Self::Told(error) => error,
        }
    }
}

/// What a failure of SQLite is in the words of the contract.
pub(crate) fn fault(error: &Error) -> Fault {
    if is_missing_fence(error) {
        return Fault::Invalid;
    }
    if is_missing_table_or_column(error) {
        return Fault::Unreadable;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            Fault::Busy
        }
        Some(ErrorCode::DiskFull) => Fault::Full,
        Some(ErrorCode::ReadOnly) => Fault::ReadOnly,
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => Fault::Forbidden,
        Some(
            ErrorCode::NotADatabase
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch,
        ) => Fault::Unreadable,
        Some(ErrorCode::CannotOpen) => Fault::Unreachable,
        _ => Fault::Internal,
    }
}

/// The database is the user's own, and its table of marks was not made yet: nothing is damaged.
fn is_missing_fence(error: &Error) -> bool {
    let message = match error {
        Error::SqlInputError { msg, .. } => msg,
        Error::SqliteFailure(_, Some(message)) => message,
        _ => return false,
    };
    message
        .strip_prefix("no such table: ")
        .is_some_and(|table| table.rsplit('.').next() == Some(FENCE_TABLE))
}

/// SQLite has no code for it. The statements themselves are right: it is the file that another hand changed.
fn is_missing_table_or_column(error: &Error) -> bool {
    match error {
        Error::SqlInputError { .. } => true,
        Error::SqliteFailure(failure, Some(message)) => {
            failure.extended_code == rusqlite::ffi::SQLITE_ERROR && message.starts_with("no such ")
        }
        _ => false,
    }
}

/// Whether a failed commit took effect.
///
/// A full disk and a lock stop it before its last frame is written, and a log without the last frame of a
/// transaction does not contain it. After anything else, a failed `fsync` for one, the frames may be in the
/// log, and a later recovery may find them.
fn commit_certainty(fault: Fault) -> Certainty {
    match fault {
        Fault::Full | Fault::Busy | Fault::ReadOnly => Certainty::NotApplied,
        Fault::Unreachable
        | Fault::TimedOut
        | Fault::AnotherStore
        | Fault::Unauthenticated
        | Fault::Forbidden
        | Fault::Unreadable
        | Fault::Unsupported
        | Fault::Invalid
        | Fault::Internal => Certainty::Unknown,
    }
}

fn words(subject: &str, path: &str, fault: Fault, error: &Error) -> String {
    let way_out = match fault {
        Fault::Full => "no space is left; free some on that disk",
        Fault::ReadOnly => "it takes no writes; make the file and its directory writable for this user",
        Fault::Forbidden => "this user may not use it; give it read and write permission",
        Fault::Unreadable => {
            "the file was not written by Tenure, or is damaged; it was left as it is; restore it, or move it \
             away and a new one is made (new tokens still rise)"
        }
        Fault::Unreachable => {
            "it cannot be opened, or what stands beside it (-wal, -shm); see that the directory exists and is mounted, and that \
             this user may read and write all of them"
        }
        Fault::Busy => "another process holds its lock",
        // See [`is_missing_fence`].
        Fault::Invalid => {
            "it has no table of marks yet; make it once, with your other tables: SqliteFence::install, or tenure fence claim"
        }
        Fault::TimedOut
        | Fault::AnotherStore
        | Fault::Unauthenticated
        | Fault::Unsupported
        | Fault::Internal => "see the disk and the kernel's log",
    };
    format!("{subject} in {path}: {way_out} (SQLite: {error})")
}
