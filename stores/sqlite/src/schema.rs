//! What the file holds, and how ours is told from somebody else's.

use crate::record::record_columns;
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::Connection;
use tenure_core::{Fault, StoreError};

/// `TENU`, in the file's header: `file(1)` shows it, and a foreign database does not have it.
pub(crate) const APPLICATION_ID: i32 = 0x5445_4E55;

/// The layout that this version reads and writes.
pub(crate) const SCHEMA_VERSION: i32 = 1;

const LAYOUT: &str = "
CREATE TABLE lease (
    name            TEXT    NOT NULL PRIMARY KEY,
    owner           TEXT    NOT NULL, -- the candidate's id, a label
    incarnation     TEXT    NOT NULL, -- the real owner: 32 hexadecimal digits, new at every start
    token           INTEGER NOT NULL, -- of this term; rises for ever
    attempt         INTEGER NOT NULL, -- by which the term was taken
    terms           INTEGER NOT NULL, -- how many there have been
    ttl_ms          INTEGER NOT NULL,
    boot_id         TEXT    NOT NULL, -- whose clock the next three were read from
    acquired_ns     INTEGER NOT NULL, -- CLOCK_BOOTTIME, nanoseconds
    renewed_ns      INTEGER NOT NULL,
    expires_ns      INTEGER NOT NULL, -- in a released record: when it ended
    released        INTEGER NOT NULL, -- 0 or 1
    wish            TEXT    NOT NULL, -- nothing, or step-down
    note            TEXT    NOT NULL,
    version         INTEGER NOT NULL, -- rises with every write of this row
    created_at      TEXT    NOT NULL, -- this and the next two: wall clock, for people; they decide nothing
    acquired_at     TEXT    NOT NULL,
    last_renewed_at TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sighting (               -- records of other boots, and since when this boot has seen them
    name             TEXT    NOT NULL,
    observer_boot_id TEXT    NOT NULL,
    record_boot_id   TEXT    NOT NULL,
    record_token     INTEGER NOT NULL,
    record_version   INTEGER NOT NULL,
    first_seen_ns    INTEGER NOT NULL,
    PRIMARY KEY (name, observer_boot_id)
) STRICT, WITHOUT ROWID;
";

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    /// Nobody's yet: no table in it.
    Empty,
    /// Ours, of this schema version.
    Tenure(i32),
    /// Another program's.
    Foreign { application_id: i32, tables: i64 },
}

/// Reads whose file it is, and changes nothing.
///
/// In one snapshot: somebody else may be making the tables, and a number from before beside one from after
/// looks like another program's file.
pub(crate) fn identity(connection: &Connection) -> Result<Identity, Trouble> {
    if !connection.is_autocommit() {
        return identity_of_snapshot(connection);
    }
    let snapshot = connection.unchecked_transaction()?;
    let identity = identity_of_snapshot(&snapshot)?;
    snapshot.finish()?;
    Ok(identity)
}

fn identity_of_snapshot(connection: &Connection) -> Result<Identity, Trouble> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i32>(0));
    let application_id = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application_id, version, tables) {
        (APPLICATION_ID, version, _) => Identity::Tenure(version),
        (0, 0, 0) => Identity::Empty,
        _ => Identity::Foreign {
            application_id,
            tables,
        },
    })
}

/// Makes the file ours if it is empty, and refuses it if it is not ours.
pub(crate) fn establish(connection: &Connection, path: &str) -> Result<(), Trouble> {
    match identity(connection)? {
        Identity::Tenure(SCHEMA_VERSION) => {}
        Identity::Empty => {
            // Before the tables: the switch cannot be made inside a transaction.
            write_ahead_log(connection, path)?;
            transaction::write(connection, |connection| {
                if identity(connection)? == Identity::Empty {
                    connection.execute_batch(LAYOUT)?;
                    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
                    connection.pragma_update(None, "user_version", SCHEMA_VERSION)?;
                }
                Ok(())
            })?;
            return establish_known(connection, path);
        }
        other => return Err(refusal(connection, other, path)),
    }
    write_ahead_log(connection, path)?;
    columns_exist(connection)
}

/// After somebody, perhaps another process, has made the tables.
fn establish_known(connection: &Connection, path: &str) -> Result<(), Trouble> {
    match identity(connection)? {
        Identity::Tenure(SCHEMA_VERSION) => columns_exist(connection),
        other => Err(refusal(connection, other, path)),
    }
}

fn columns_exist(connection: &Connection) -> Result<(), Trouble> {
    drop(connection.prepare_cached(concat!(
        "SELECT ",
        record_columns!(),
        " FROM lease WHERE name = ?1"
    ))?);
    drop(connection.prepare("SELECT created_at, acquired_at, last_renewed_at FROM lease")?);
    drop(connection.prepare("SELECT first_seen_ns FROM sighting")?);
    Ok(())
}

/// Readers must go on while a writer works, or a frozen writer would stop everybody.
fn write_ahead_log(connection: &Connection, path: &str) -> Result<(), Trouble> {
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(Trouble::Told(StoreError::not_applied(
        Fault::Unsupported,
        format!(
            "{path} stays in journal mode {mode}, but leases need WAL, which needs shared memory; use a path \
             on an ordinary local disk"
        ),
    )))
}

/// How the number of the layout that this version knows comes back into a file that another program has
/// written it over in: migration tools count their steps there.
pub(crate) fn way_back(path: &str) -> String {
    format!("sqlite3 '{path}' \"PRAGMA user_version = {SCHEMA_VERSION}\" puts it back")
}

fn refusal(connection: &Connection, identity: Identity, path: &str) -> Trouble {
    let or_another = || match columns_exist(connection) {
        Ok(()) => format!(
            "; or, if no other Tenure uses the file, another program has set that number, as migration tools do: {}",
            way_back(path)
        ),
        Err(_) => String::new(),
    };
    Trouble::Told(match identity {
        Identity::Tenure(version) if version > SCHEMA_VERSION => StoreError::not_applied(
            Fault::Unsupported,
            format!(
                "{path} has schema version {version}, written by a newer Tenure; this one reads version \
                 {SCHEMA_VERSION}: upgrade it{}",
                or_another()
            ),
        ),
        Identity::Tenure(version) => StoreError::not_applied(
            Fault::Unreadable,
            format!(
                "{path} has schema version {version}, which never existed; it was left as it is; restore it \
                 or move it away{}",
                or_another()
            ),
        ),
        Identity::Empty => StoreError::not_applied(
            Fault::Internal,
            format!("{path} is still empty after its tables were made; see the disk and the kernel's log"),
        ),
        Identity::Foreign {
            application_id,
            tables,
        } => StoreError::not_applied(
            Fault::Unreadable,
            format!(
                "{path} is another program's SQLite database (application id {application_id}, {tables} \
                 tables and indexes); it was left as it is; give the leases a file of their own (a fence in it needs no set-up: \
                 `tenure fence claim` makes its table)"
            ),
        ),
    })
}
