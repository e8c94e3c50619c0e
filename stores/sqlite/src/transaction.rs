//! One write transaction: as short as it can be, and never left open.

use crate::trouble::Trouble;
use rusqlite::Connection;

/// Runs `work` while holding the write lock of the file.
///
/// `work` is nothing but statements and a look at the clock: whatever happens inside makes every other
/// process wait. An error, and a panic, roll back.
///
/// # Errors
/// [`Trouble::Statement`] if the lock is taken or `work` failed: nothing was changed. [`Trouble::Commit`].
pub(crate) fn write<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let open = Open(connection);
    open.roll_back();
    run(connection, "BEGIN IMMEDIATE")?;
    let outcome = work(connection)?;
    run(connection, "COMMIT").map_err(Trouble::Commit)?;
    Ok(outcome)
}

/// Runs one statement that has neither parameters nor rows.
fn run(connection: &Connection, statement: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(statement)?.execute([]).map(drop)
}

/// Rolls back whatever is still open when it goes.
struct Open<'a>(&'a Connection);

impl Open<'_> {
    fn roll_back(&self) {
        if !self.0.is_autocommit() {
            // It can only fail where SQLite has rolled back by itself.
            drop(self.0.execute_batch("ROLLBACK"));
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.roll_back();
    }
}
