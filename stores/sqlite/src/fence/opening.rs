//! Opening a fence; for the command also one whose table is perhaps missing.

use super::connection::{connect_marks, open, open_durable};
use super::refusals::Noter;
use super::{FencedTable, SqliteFence};
use crate::options::SqliteOptions;
use crate::patience::{Patience, patiently_blocking};
use crate::seat::Seat;
use crate::trouble::{Trouble, fault};
use rusqlite::OptionalExtension;
use std::path::Path;
use tenure_core::{Fault, FenceError, Leases, ResourceName, StoreError};

impl SqliteOptions {
    /// Opens the fence in the existing database there: as [`SqliteFence::new`], on the file systems that are
    /// [trusted](Self::trust).
    ///
    /// # Errors
    /// As [`SqliteFence::new`].
    pub fn open_fence(&self, leases: Leases) -> Result<SqliteFence, StoreError> {
        let shown = self.path.display().to_string();
        let patience = Patience::new();
        // The first look at a file waits for whoever writes it, or closes it, just now.
        let (marks, paths, files) = patiently_blocking(&patience, &shown, || connect_marks(self))?;
        let file = Self::new(&paths.database).trust(self.trust);
        let fence = SqliteFence {
            shown,
            patience,
            noter: Noter::new(file.clone()),
            file,
            seat: Seat::new(paths, (marks, files)),
            leases,
        };
        let looked = fence.with(|connection| {
            let found = connection.prepare("SELECT resource, lease, token, refused FROM tenure_fence");
            match found.map(drop) {
                // Whoever writes just now does not make the table any less there.
                Err(error) if fault(&error) != Fault::Busy => Err(Trouble::Statement(error)),
                Ok(()) | Err(_) => Ok(()),
            }
        });
        match looked {
            Ok(()) => Ok(fence),
            Err(trouble) => Err(trouble.into_error("the fence", &fence.shown)),
        }
    }
}

impl SqliteFence {
    /// A fence over the existing database at `path`, in which [`install`](Self::install) has been run.
    ///
    /// Where the leases are elsewhere, a token from the future is known by the wall clock and not exactly,
    /// also where the file is Tenure's own: what a lease of the same name has been granted there, perhaps
    /// before the leases went elsewhere, says nothing.
    ///
    /// # Errors
    /// The file cannot be opened, is read-only, is locked for seconds, has no table of marks
    /// ([`Fault::Invalid`]), can be reached by other paths (hard links, a mount of the file itself), or is on
    /// a network file system, or one that a program serves and that is not
    /// [trusted](SqliteOptions::open_fence). Nothing was changed.
    pub fn new(path: impl AsRef<Path>, leases: Leases) -> Result<Self, StoreError> {
        SqliteOptions::new(path.as_ref()).open_fence(leases)
    }

    /// The fence in an existing database; makes its table where it is missing.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn create(options: &SqliteOptions, leases: Leases) -> Result<Self, StoreError> {
        // Looked for first: whoever finds the table takes no lock.
        if let Some(fence) = Self::find(options, leases)? {
            return Ok(fence);
        }
        let shown = options.path.display().to_string();
        patiently_blocking(&Patience::new(), &shown, || {
            Ok(open_durable(options)?.execute_batch(super::mark::TABLE)?)
        })?;
        options.open_fence(leases)
    }

    /// The fence in an existing database; `None` if it has no table of marks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn find(options: &SqliteOptions, leases: Leases) -> Result<Option<Self>, StoreError> {
        let shown = options.path.display().to_string();
        let found = patiently_blocking(&Patience::new(), &shown, || {
            let named = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tenure_fence'";
            let connection = open(options)?;
            Ok(connection.query_row(named, [], |_| Ok(())).optional()?)
        })?;
        found.map(|()| options.open_fence(leases)).transpose()
    }

    /// Installs the triggers of `table`: [`FencedTable::install`], on a connection of its own, on the disk
    /// when it returns.
    ///
    /// # Errors
    /// As there. [`Fault::Busy`] if another process writes just now.
    pub fn protect(&self, table: &FencedTable) -> Result<Option<ResourceName>, FenceError> {
        self.on_own_connection(|connection| table.install(connection))
    }

    /// Removes the triggers of `table`: [`FencedTable::remove`], on a connection of its own, on the disk when
    /// it returns.
    ///
    /// # Errors
    /// As there. [`Fault::Busy`] if another process writes just now.
    pub fn unprotect(&self, table: &FencedTable) -> Result<(), FenceError> {
        self.on_own_connection(|connection| table.remove(connection))
    }

    fn on_own_connection<T>(
        &self,
        change: impl Fn(&rusqlite::Connection) -> Result<T, FenceError>,
    ) -> Result<T, FenceError> {
        let changed = patiently_blocking(&self.patience, &self.shown, || {
            match change(&open_durable(&self.file)?) {
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
    use crate::SqliteOptions;
    use tempfile::TempDir;
    use tenure_core::Leases;

    /// Without EXTRA a power cut may bring a rollback journal back, and take the triggers away.
    #[test]
    fn triggers_are_installed_by_commits_that_wait_for_the_folder_too() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("data.db");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE account (id INTEGER)")
            .unwrap();
        let fence = SqliteFence::create(&SqliteOptions::new(&path), Leases::Here).unwrap();
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
