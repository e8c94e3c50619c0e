//! The ledger in a SQLite file.

use super::{Committed, Fencing, Ledger, LedgerError, Row, Writer, must_be_its_file, resource};
use crate::payments::{Batch, Checksum, Payment, movements};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure::contract::Answer;
use tenure::sqlite::SqliteFence;
use tenure::{Fence, FenceError, Leases, Term};

/// A ledger, and its fence, in one file.
pub struct SqliteLedger {
    connection: Connection,
    fence: SqliteFence,
    fencing: Fencing,
}

impl SqliteLedger {
    /// Opens the file, and makes it where it is missing.
    pub fn open(path: &str, fencing: Fencing) -> Result<Self, LedgerError> {
        let mut connection =
            Connection::open(path).map_err(|error| LedgerError::Trouble(format!("{path}: {error}")))?;
        connection.busy_timeout(BUSY_MAX)?;
        // Readers do not wait for the writer, nor the writer for them.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // What is committed survives a power cut.
        connection.pragma_update(None, "synchronous", "FULL")?;
        make_tables(&mut connection)?;
        let fence = SqliteFence::new(path, Leases::Elsewhere).map_err(FenceError::Store)?;
        Ok(Self {
            connection,
            fence,
            fencing,
        })
    }

    /// Begins a transaction and enters the fence: from here to its end no later term can claim.
    fn begin(&mut self, term: &Term) -> Result<Transaction<'_>, LedgerError> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        match self.fencing {
            Fencing::On => self.fence.enter(&transaction, resource(), term)?,
            Fencing::Off => {}
        }
        Ok(transaction)
    }

    fn write(&mut self, batch: Batch<'_>, writer: &Writer) -> Result<(), LedgerError> {
        let token = writer.term.token.signed();
        let transaction = self.begin(&writer.term)?;
        {
            let mut settle = transaction.prepare_cached(
                "INSERT INTO settled (payment, debtor, creditor, cents, token) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for payment in batch.payments {
                settle.execute(params![
                    payment.id,
                    payment.debtor,
                    payment.creditor,
                    payment.cents,
                    token
                ])?;
            }
            let mut book = transaction.prepare_cached(
                "INSERT INTO account (id, cents) VALUES (?1, ?2) \
                 ON CONFLICT (id) DO UPDATE SET cents = cents + excluded.cents",
            )?;
            for (account, cents) in movements(batch.payments) {
                book.execute(params![account, cents])?;
            }
        }
        transaction.execute(
            "INSERT INTO batch (start, payments, token, instance) VALUES (?1, ?2, ?3, ?4)",
            params![batch.start, batch.payments.len(), token, writer.instance],
        )?;
        transaction.execute("UPDATE checkpoint SET settled = ?1", [batch.end()])?;
        transaction.commit()?;
        Ok(())
    }

    fn rows(&self, show: &mut dyn FnMut(Row)) -> Result<(), rusqlite::Error> {
        let mut statement = self
            .connection
            .prepare("SELECT payment, debtor, creditor, cents, token FROM settled")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            show(Row {
                payment: Payment {
                    id: row.get(0)?,
                    debtor: row.get(1)?,
                    creditor: row.get(2)?,
                    cents: row.get(3)?,
                },
                token: row.get(4)?,
            });
        }
        Ok(())
    }
}

impl Ledger for SqliteLedger {
    fn fence(&self) -> &dyn Fence {
        &self.fence
    }

    fn prepare<'a>(&'a mut self, _writer: &'a Writer) -> Answer<'a, Result<(), LedgerError>> {
        // What a killed process had open, the operating system has closed, and SQLite rolls back.
        Box::pin(async { Ok(()) })
    }

    fn checkpoint<'a>(
        &'a mut self,
        file: Checksum,
        writer: &'a Writer,
    ) -> Answer<'a, Result<u64, LedgerError>> {
        Box::pin(async move {
            let transaction = self.begin(&writer.term)?;
            let (settled, settles): (u64, Option<String>) =
                transaction.query_row(CHECKPOINT, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            must_be_its_file(settles.as_deref(), file)?;
            if settles.is_none() {
                transaction.execute("UPDATE checkpoint SET file = ?1", [file.to_string()])?;
                transaction.commit()?;
            }
            Ok(settled)
        })
    }

    fn settle<'a>(&'a mut self, batch: Batch<'a>, writer: &'a Writer) -> Answer<'a, Result<(), LedgerError>> {
        Box::pin(async move { self.write(batch, writer) })
    }

    fn progress(&self) -> Answer<'_, Result<u64, LedgerError>> {
        let settled = self.connection.query_row(CHECKPOINT, [], |row| row.get(0));
        Box::pin(async { Ok(settled?) })
    }

    fn each_row<'a>(&'a self, show: &'a mut (dyn FnMut(Row) + Send)) -> Answer<'a, Result<(), LedgerError>> {
        let shown = self.rows(show);
        Box::pin(async { Ok(shown?) })
    }

    fn balances(&self) -> Answer<'_, Result<BTreeMap<u32, i64>, LedgerError>> {
        let read = || {
            self.connection
                .prepare("SELECT id, cents FROM account")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<_, rusqlite::Error>>()
        };
        let balances = read();
        Box::pin(async { Ok(balances?) })
    }

    fn batches(&self) -> Answer<'_, Result<Vec<Committed>, LedgerError>> {
        let read = || {
            self.connection
                .prepare("SELECT start, payments, token, instance FROM batch ORDER BY start, token")?
                .query_map([], |row| {
                    Ok(Committed {
                        start: row.get(0)?,
                        payments: row.get(1)?,
                        token: row.get(2)?,
                        instance: row.get(3)?,
                    })
                })?
                .collect::<Result<_, rusqlite::Error>>()
        };
        let batches = read();
        Box::pin(async { Ok(batches?) })
    }
}

/// Makes the tables where they are missing, and the fence's with them. Where they are there it only reads: a
/// standby that starts must not wait until the leader pauses between two transactions.
fn make_tables(connection: &mut Connection) -> Result<(), LedgerError> {
    let layout =
        |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i32>(0));
    if layout(connection)? == LAYOUT {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if layout(&transaction)? != LAYOUT {
        transaction.execute_batch(TABLES)?;
        SqliteFence::install(&transaction)?;
        transaction.pragma_update(None, "user_version", LAYOUT)?;
    }
    transaction.commit()?;
    Ok(())
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Trouble(format!("the ledger: {error}"))
    }
}

/// The version of the tables below, in the file's header.
const LAYOUT: i32 = 2;

const TABLES: &str = "
CREATE TABLE settled (
    payment  INTEGER NOT NULL, -- not unique: a payment that is settled twice must be seen
    debtor   INTEGER NOT NULL,
    creditor INTEGER NOT NULL,
    cents    INTEGER NOT NULL,
    token    INTEGER NOT NULL
) STRICT;
CREATE TABLE account (
    id    INTEGER NOT NULL PRIMARY KEY,
    cents INTEGER NOT NULL
) STRICT;
CREATE TABLE batch (
    start    INTEGER NOT NULL,
    payments INTEGER NOT NULL,
    token    INTEGER NOT NULL,
    instance TEXT    NOT NULL
) STRICT;
CREATE TABLE checkpoint (
    job     TEXT    NOT NULL PRIMARY KEY,
    settled INTEGER NOT NULL,
    file    TEXT              -- the checksum of what it settles, once a term has begun with it
) STRICT;
INSERT INTO checkpoint (job, settled) VALUES ('nightly', 0);
";

const CHECKPOINT: &str = "SELECT settled, file FROM checkpoint WHERE job = 'nightly'";

/// How long a statement waits for another process's transaction: longer than any batch takes.
const BUSY_MAX: Duration = Duration::from_secs(2);
