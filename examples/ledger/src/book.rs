//! The ledger's state: a balance, and how it came to be.

use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The token it came with.
    pub token: i64,
    /// The balance before.
    pub before: i64,
    /// The balance that was written.
    pub after: i64,
}

/// A balance in a file. Knows nothing of leaders.
#[derive(Clone)]
pub struct Book(Arc<Mutex<Connection>>);

impl Book {
    /// Opens the file, and makes its tables where they are missing.
    pub fn open(file: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE IF NOT EXISTS entry (
                sequence INTEGER PRIMARY KEY,
                token    INTEGER NOT NULL,
                before   INTEGER NOT NULL,
                after    INTEGER NOT NULL
             ) STRICT;",
        )?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// The balance.
    pub fn balance(&self) -> rusqlite::Result<i64> {
        self.with(|connection| balance(connection))
    }

    /// Sets the balance.
    pub fn set(&self, token: i64, after: i64) -> rusqlite::Result<()> {
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let before = balance(&transaction)?;
            transaction
                .prepare_cached("INSERT INTO entry (token, before, after) VALUES (?1, ?2, ?3)")?
                .execute(params![token, before, after])?;
            transaction.commit()
        })
    }

    /// Every change, in the order of their effects.
    pub fn history(&self) -> rusqlite::Result<Vec<Entry>> {
        self.with(|connection| {
            let mut statement =
                connection.prepare("SELECT token, before, after FROM entry ORDER BY sequence")?;
            let entries = statement.query_map([], |row| {
                Ok(Entry {
                    token: row.get(0)?,
                    before: row.get(1)?,
                    after: row.get(2)?,
                })
            })?;
            entries.collect()
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn balance(connection: &Connection) -> rusqlite::Result<i64> {
    let latest = "SELECT coalesce((SELECT after FROM entry ORDER BY sequence DESC LIMIT 1), 0)";
    connection.prepare_cached(latest)?.query_row([], |row| row.get(0))
}
