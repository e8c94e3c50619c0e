//! Opening a fence without a connection of one's own: for the command.

use super::connection::{open, open_durable};
use super::{FencedTable, SqliteFence};
use crate::options::SqliteOptions;
use crate::patience::{Jitter, patiently_blocking};
use crate::trouble::Trouble;
use rusqlite::OptionalExtension;
use std::path::{Path, PathBuf};
use tenure_core::{Fault, FenceError, StoreError};

impl SqliteFence {
    /// The file that a URL names: `sqlite:PATH`.
    ///
    /// # Errors
    /// [`FenceError::Store`] for another URL.
    pub fn path_of(url: &str) -> Result<PathBuf, FenceError> {
        Ok(SqliteOptions::from_url(url)?.path)
    }

    /// The fence in the existing database at `path`; makes its table where it is missing.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn create(path: impl AsRef<Path>) -> Result<Self, FenceError> {
        let path = path.as_ref();
        // Looked for first: whoever finds the table takes no lock.
        if let Some(fence) = Self::find(path)? {
            return Ok(fence);
        }
        let shown = path.display().to_string();
        patiently_blocking(&Jitter::seeded(), &shown, || {
            Ok(open_durable(path)?.execute_batch(super::mark::TABLE)?)
        })?;
        Self::new(path)
    }

    /// The fence in the existing database at `path`; `None` if it has no table of marks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn find(path: impl AsRef<Path>) -> Result<Option<Self>, FenceError> {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let found = patiently_blocking(&Jitter::seeded(), &shown, || {
            let named = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tenure_fence'";
            let connection = open(path)?;
            Ok(connection.query_row(named, [], |_| Ok(())).optional()?)
        })?;
        found.map(|()| Self::new(path)).transpose()
    }

    /// Installs the triggers of `table`: [`FencedTable::install`], on a connection of its own, on the disk when it returns.
    ///
    /// # Errors
    /// As there. [`Fault::Busy`] if another process writes just now.
    pub fn protect(&self, table: &FencedTable) -> Result<(), FenceError> {
        self.on_own_connection(|connection| table.install(connection))
    }

    /// Removes the triggers of `table`: [`FencedTable::remove`], on a connection of its own, on the disk when it returns.
    ///
    /// # Errors
    /// As there. [`Fault::Busy`] if another process writes just now.
    pub fn unprotect(&self, table: &FencedTable) -> Result<(), FenceError> {
        self.on_own_connection(|connection| table.remove(connection))
    }

    fn on_own_connection(
        &self,
        change: impl Fn(&rusqlite::Connection) -> Result<(), FenceError>,
    ) -> Result<(), FenceError> {
        let changed = patiently_blocking(&self.jitter, &self.shown, || {
            match change(&open_durable(&self.path)?) {
                Err(FenceError::Store(error)) if error.fault == Fault::Busy => {
                    Err(Trouble::Statement(locked()))
                }
                outcome => Ok(outcome),
            }
        });
        changed.map_err(|error: StoreError| FenceError::Store(error))?
    }
}

/// What tells [`patiently_blocking`] to try again.
fn locked() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::SqliteFence;
    use tempfile::TempDir;

    /// Without EXTRA a power cut may bring a rollback journal back, and take the triggers away.
    #[test]
    fn triggers_are_installed_by_commits_that_wait_for_the_folder_too() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("data.db");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE account (id INTEGER)")
            .unwrap();
        let fence = SqliteFence::create(&path).unwrap();
        fence
            .on_own_connection(|connection| {
                let asked: i64 = connection
                    .query_row("PRAGMA synchronous", [], |row| row.get(0))
                    .unwrap();
                assert_eq!(asked, 3, "EXTRA");
                Ok(())
            })
            .unwrap();
    }
}
