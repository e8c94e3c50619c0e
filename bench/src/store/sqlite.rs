//! SQLite: the bare driver does the same in as few statements as it can: a look for losers, one transaction
//! on disk to take the lease, one not synced to give it back.

use super::compare;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tenure::sqlite::SqliteStore;
use tenure_testkit::ScratchDir;

pub async fn measure(rounds: u32) {
    let folder = ScratchDir::new("bench-sqlite");
    let store = SqliteStore::open(folder.join("leases.db")).unwrap();
    let bare = Bare::open(&folder.join("bare.db"));
    compare("SQLite", rounds, &store, async |_| bare.turn()).await;
}

pub struct Bare {
    durable: Connection,
    relaxed: Connection,
}

const LOOK: &str =
    "SELECT owner, incarnation, token, attempt, expires, released, version FROM lease WHERE name = ?1";

impl Bare {
    pub fn open(file: &Path) -> Self {
        let connect = |synchronous: &str| {
            let connection = Connection::open(file).unwrap();
            let settings = format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};");
            connection.execute_batch(&settings).unwrap();
            connection
        };
        let durable = connect("FULL");
        durable
            .execute_batch(
                "CREATE TABLE lease (name TEXT PRIMARY KEY, owner TEXT, incarnation TEXT, token INTEGER, \
                 attempt INTEGER, terms INTEGER, ttl INTEGER, boot TEXT, acquired INTEGER, renewed INTEGER, \
                 expires INTEGER, released INTEGER, note TEXT, version INTEGER, created_at TEXT) STRICT, WITHOUT ROWID",
            )
            .unwrap();
        Self {
            durable,
            relaxed: connect("NORMAL"),
        }
    }

    fn look(connection: &Connection) -> Option<(i64, i64)> {
        connection
            .prepare_cached(LOOK)
            .unwrap()
            .query_row(["bench"], |row| Ok((row.get(2)?, row.get(6)?)))
            .optional()
            .unwrap()
    }

    fn run(connection: &Connection, statement: &str) {
        connection.prepare_cached(statement).unwrap().execute([]).unwrap();
    }

    pub fn turn(&self) {
        Self::look(&self.durable);
        Self::run(&self.durable, "BEGIN IMMEDIATE");
        let (token, version) = Self::look(&self.durable).unwrap_or((0, 0));
        let clock = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let token = clock.max(token + 1);
        self.durable
            .prepare_cached(
                "INSERT INTO lease VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, 0, '', ?11, \
                 strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT (name) DO UPDATE SET owner = ?2, \
                 incarnation = ?3, token = ?4, attempt = ?5, terms = ?6, ttl = ?7, boot = ?8, acquired = ?9, \
                 renewed = ?9, expires = ?10, released = 0, note = '', version = ?11, created_at = excluded.created_at",
            )
            .unwrap()
            .execute(params![
                "bench",
                "bench",
                "00000000000000000000000000000007",
                token,
                version,
                version,
                30_000,
                "5532ebb8-4d96-40d1-9ee1-d0932230b6d7",
                clock * 1_000_000,
                (clock + 30_000) * 1_000_000,
                version + 1
            ])
            .unwrap();
        Self::run(&self.durable, "COMMIT");
        Self::run(&self.relaxed, "BEGIN IMMEDIATE");
        Self::look(&self.relaxed).unwrap();
        self.relaxed
            .prepare_cached("UPDATE lease SET released = 1, expires = ?2, version = ?3 WHERE name = ?1")
            .unwrap()
            .execute(params!["bench", clock * 1_000_000, version + 2])
            .unwrap();
        Self::run(&self.relaxed, "COMMIT");
    }
}
