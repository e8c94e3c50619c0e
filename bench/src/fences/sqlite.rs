//! A number in an SQLite file, protected in the writer's transaction or by triggers.

use super::kind::Kind;
use super::register::{FrozenWriter, NotClaimed, Outcome, Register, Write, claim, resource};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::sync::Mutex;
use std::time::Duration;
use tenure::contract::Answer;
use tenure::sqlite::{FencedTable, SqliteFence};
use tenure::{Leases, Term};

pub struct SqliteRegister {
    kind: Kind,
    path: String,
    fence: SqliteFence,
    tables: [FencedTable; 2],
    idle: Mutex<Vec<Connection>>,
}

impl SqliteRegister {
    pub async fn open(kind: Kind, path: &str) -> Self {
        let connection = connect(path);
        let made: i64 = connection
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE name = 'register'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        let tables = ["register", "history"].map(|table| FencedTable::new(table, &resource()));
        if made == 0 {
            connection
                .execute_batch(
                    "PRAGMA journal_mode = WAL;
                     CREATE TABLE register (value INTEGER, fence INTEGER);
                     INSERT INTO register VALUES (0, NULL);
                     CREATE TABLE history (place INTEGER PRIMARY KEY, fence INTEGER, read INTEGER);
                     CREATE TABLE bare (value INTEGER, fence INTEGER);
                     INSERT INTO bare VALUES (0, NULL);
                     CREATE TABLE bare_history (place INTEGER PRIMARY KEY, fence INTEGER, read INTEGER);",
                )
                .unwrap();
            SqliteFence::install(&connection).unwrap();
            if kind == Kind::SqliteTable {
                for table in &tables {
                    table.install(&connection).unwrap();
                }
            }
        }
        Self {
            kind,
            path: path.to_owned(),
            fence: SqliteFence::new(path, Leases::Here).unwrap(),
            tables,
            idle: Mutex::default(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        let idle = self.idle.lock().unwrap().pop();
        let mut connection = idle.unwrap_or_else(|| connect(&self.path));
        let outcome = work(&mut connection);
        self.idle.lock().unwrap().push(connection);
        outcome
    }

    fn enter(&self, transaction: &Transaction<'_>, term: &Term) -> Result<(), Outcome> {
        if self.kind == Kind::SqliteTable {
            return Ok(());
        }
        self.fence
            .enter(transaction, &resource(), term)
            .map_err(|error| Outcome::of(&error))
    }

    fn run(&self, connection: &mut Connection, term: &Term, read: i64) -> Result<(), Outcome> {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|_| Outcome::Undecided)?;
        self.enter(&transaction, term)?;
        let judge = |error: rusqlite::Error| match self.tables[0].refusal(&self.fence, term, &error) {
            Some(_) => Outcome::Refused,
            None => Outcome::Undecided,
        };
        let token = term.token.signed();
        transaction
            .execute("UPDATE register SET value = ?1, fence = ?2", [read + 1, token])
            .map_err(judge)?;
        transaction
            .execute("INSERT INTO history (fence, read) VALUES (?1, ?2)", [token, read])
            .map_err(judge)?;
        transaction.commit().map_err(|_| Outcome::Undecided)
    }
}

impl Register for SqliteRegister {
    fn claim<'a>(&'a self, term: &'a Term) -> Answer<'a, Result<(), NotClaimed>> {
        Box::pin(claim(&self.fence, term))
    }

    fn read<'a>(&'a self, _term: &'a Term) -> Answer<'a, Option<i64>> {
        let value =
            self.with(|connection| connection.query_row("SELECT value FROM register", [], |row| row.get(0)));
        Box::pin(async { value.ok() })
    }

    fn write<'a>(&'a self, term: &'a Term, read: i64) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let written = self.with(|connection| self.run(connection, term, read));
            tokio::task::yield_now().await;
            written.err().unwrap_or(Outcome::Accepted)
        })
    }

    fn write_bare(&self, read: i64) -> Option<Answer<'_, ()>> {
        Some(Box::pin(async move {
            self.with(|connection| {
                let transaction = connection
                    .transaction_with_behavior(TransactionBehavior::Immediate)
                    .unwrap();
                transaction
                    .execute("UPDATE bare SET value = ?1, fence = ?2", [read + 1, 1])
                    .unwrap();
                transaction
                    .execute(
                        "INSERT INTO bare_history (fence, read) VALUES (?1, ?2)",
                        [1, read],
                    )
                    .unwrap();
                transaction.commit().unwrap();
            });
            tokio::task::yield_now().await;
        }))
    }

    fn history(&self) -> Answer<'_, Vec<Write>> {
        let history = self.with(|connection| {
            let mut rows = connection
                .prepare("SELECT fence, read FROM history ORDER BY place")
                .unwrap();
            let rows = rows.query_map([], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)));
            rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap()
        });
        Box::pin(async { history })
    }

    fn frozen_writer(&self) -> FrozenWriter {
        FrozenWriter::HoldsUntilThawed
    }
}

fn connect(path: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_millis(100)).unwrap();
    connection
}
