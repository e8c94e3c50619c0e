//! Hearing that others have committed.

use crate::database::Database;
use crate::files::Files;
use crate::seat::Connected;
use crate::trouble::Trouble;
use rusqlite::Connection;
use std::cell::Cell;

/// What was heard of the leases; of several, the last of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heard {
    /// Some term may have begun.
    Begin,
    /// Anything else may have changed, too.
    Change,
    /// Changes may have gone unheard.
    Interruption,
}

/// Counts the commits of others, by a connection of its own: none counts those that it made itself.
pub(crate) struct Ear {
    connection: Connection,
    /// The commits of others at the last check; `None` before the first one.
    commits: Cell<Option<i64>>,
}

impl Ear {
    pub(crate) fn open(database: &Database) -> Result<(Self, Files), Trouble> {
        let (connection, files) = database.connect_once()?;
        let commits = Cell::new(None);
        Ok((Self { connection, commits }, files))
    }

    /// Whether others have committed since the last check. After a first one there is no telling.
    pub(crate) fn listen(&self) -> Result<Option<Heard>, Trouble> {
        // A number that changes when any other connection has committed.
        let now = self
            .connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        Ok(match self.commits.replace(Some(now)) {
            None => Some(Heard::Interruption),
            Some(before) if before != now => Some(Heard::Change),
            Some(_) => None,
        })
    }
}

impl Connected for Ear {
    fn leave(&self) {
        self.connection.leave();
    }
}
