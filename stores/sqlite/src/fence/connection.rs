//! The connections of a fence, and how its commits wait for the disk.

use crate::files::{self, FileIdentity, Files, Paths, refuse_removed};
use crate::filesystem;
use crate::log::Log;
use crate::only_path;
use crate::options::SqliteOptions;
use crate::seat::{Connected, all_leave_if_others};
use crate::trouble::Trouble;
use rusqlite::{Connection, OpenFlags};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_local::FileSystem;

/// The connection for claims and looks, and the log that it writes; none where the database has a rollback
/// journal.
pub(super) struct Marks {
    pub(super) connection: Connection,
    pub(super) log: Option<Arc<Log>>,
}

impl Connected for Marks {
    fn leave(&self) {
        self.connection.leave();
    }
}

pub(super) fn open(options: &SqliteOptions) -> Result<Connection, Trouble> {
    let path = &options.path;
    // A term that has claimed by one path and a writer that enters by another have two logs: neither waits
    // for the other. At the opening is enough: of two paths the second one is opened while both are there.
    only_path::check(path).map_err(Trouble::Told)?;
    match path.canonicalize() {
        Ok(database) => {
            // Where its shared memory and locks do not reach, a claim on another machine neither waits for a
            // writer nor is seen by it.
            let file_system = FileSystem::of(&database).map_err(Trouble::Told)?;
            filesystem::check(file_system, &database, options.trust).map_err(Trouble::Told)?;
            all_leave_if_others(&database);
            refuse_removed(&Paths::of(&database), &path.display().to_string())?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Trouble::Told(missing(path))),
        // What else is the matter is told by SQLite.
        Err(_) => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    Ok(connection)
}

/// A fence makes no database: one that nobody writes to protects nothing.
fn missing(path: &Path) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!(
            "there is no file {}: the marks stand in the database of the data that they protect; give its path, or make it \
             first",
            path.display()
        ),
    )
}

/// With a rollback journal EXTRA also waits for the directory, without which a power cut could bring the
/// journal back and take the claim away.
const DURABLE: &str = "EXTRA";

/// A connection on which every commit waits for the disk by SQLite's own means, in either mode.
pub(super) fn open_durable(options: &SqliteOptions) -> Result<Connection, Trouble> {
    let connection = open(options)?;
    connection.pragma_update(None, "synchronous", DURABLE)?;
    Ok(connection)
}

/// A connection that has read, the paths of what it has opened, and which files these are. With a rollback
/// journal its commits wait for the disk as `in_a_journal` says. A write-ahead log is only handed to the
/// kernel: see [`Log`].
pub(super) fn connect(
    options: &SqliteOptions,
    in_a_journal: &str,
) -> Result<(Connection, Paths, Files), Trouble> {
    let (connection, file) = FileIdentity::of_opening(&options.path, || open(options))?;
    let file = file.ok_or(Trouble::Parted)?;
    let paths = Paths::of(Path::new(connection.path().unwrap_or_default()));
    let shown = options.path.display().to_string();
    // It opens the log when it first reads.
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    // While this connection is open nobody can leave the log; who begins one makes this one wait more than it
    // must.
    let (synchronous, files) = match mode.as_str() {
        "wal" => ("NORMAL", Files::of_opened(file, &paths, &shown)?),
        // A journal is made anew for each transaction.
        _ => (in_a_journal, Files::beside(file, &paths)),
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    match files {
        Some(files) => Ok((connection, paths, files)),
        None => {
            files::abandon(&connection);
            Err(Trouble::Parted)
        }
    }
}

/// As [`connect`], after the files at the path were found to be others.
pub(super) fn reconnect(options: &SqliteOptions, in_a_journal: &str) -> Result<(Connection, Files), Trouble> {
    let (connection, _, files) = connect(options, in_a_journal)?;
    Ok((connection, files))
}

/// A connection for marks.
pub(super) fn connect_marks(options: &SqliteOptions) -> Result<(Marks, Paths, Files), Trouble> {
    let (connection, paths, files) = connect(options, DURABLE)?;
    let log = files.log.is_some().then(|| Log::open(&paths, &files));
    match log {
        Some(None) => {
            files::abandon(&connection);
            Err(Trouble::Parted)
        }
        None => Ok((
            Marks {
                connection,
                log: None,
            },
            paths,
            files,
        )),
        Some(log) => Ok((Marks { connection, log }, paths, files)),
    }
}

pub(super) fn reconnect_marks(options: &SqliteOptions) -> Result<(Marks, Files), Trouble> {
    let (marks, _, files) = connect_marks(options)?;
    Ok((marks, files))
}
