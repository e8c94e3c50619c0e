//! Money between accounts, each with a lock and a fence of its own: sixteen transfers at once, nothing is
//! lost.
//!
//! ```text
//! cargo run -p tenure --example transfers
//! ```
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use rusqlite::{Connection, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure::sqlite::{SqliteFence, SqliteStore};
use tenure::{Leases, Lock, LockManager, ResourceName};

const ACCOUNTS: i64 = 4;
const TRANSFERS: i64 = 16;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Makes the transfers, and counts the money after them.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let ledger = folder.path().join("ledger.db");
    open_accounts(&ledger)?;
    let store = Arc::new(SqliteStore::open(folder.path().join("locks.db"))?);
    let manager = Arc::new(LockManager::builder(store).owner_tag("transfers").build()?);
    let transfers: Vec<_> = (0..TRANSFERS)
        .map(|number| {
            let (manager, ledger) = (manager.clone(), ledger.clone());
            tokio::spawn(transfer(
                manager,
                ledger,
                number % ACCOUNTS,
                (number * 7 + 1) % ACCOUNTS,
            ))
        })
        .collect();
    for transfer in transfers {
        transfer.await??;
    }
    let total: i64 = open(&ledger)?.query_row("SELECT sum(balance) FROM account", [], |row| row.get(0))?;
    assert_eq!(total, 100 * ACCOUNTS, "money came or went");
    println!("{TRANSFERS} transfers among {ACCOUNTS} accounts; the total is still {total}");
    Ok(())
}

async fn transfer(manager: Arc<LockManager>, ledger: PathBuf, from: i64, to: i64) -> Result<(), Failure> {
    if from == to {
        return Ok(());
    }
    // Always in the order of the names: who takes two locks in any order waits for who took them in another.
    let (low, high) = (from.min(to), from.max(to));
    let mut locks = Vec::new();
    for account in [low, high] {
        let name = format!("account/{account}");
        locks.push((
            ResourceName::new(&name)?,
            manager.try_lock_for(&name, Duration::from_secs(30)).await?,
        ));
    }
    // First claim, then read: whatever an older holder still writes is refused from here on.
    let fence = SqliteFence::new(&ledger, Leases::Elsewhere)?;
    for (account, lock) in &locks {
        lock.claim(&fence, account).await?;
    }
    book(&ledger, &fence, &locks, [(from, -10), (to, 10)])?;
    for (_, mut lock) in locks {
        lock.release().await;
    }
    Ok(())
}

/// One transaction: enters the fence of each account with its token, then reads and writes.
fn book(
    ledger: &Path,
    fence: &SqliteFence,
    locks: &[(ResourceName, Lock)],
    changes: [(i64, i64); 2],
) -> Result<(), Failure> {
    let mut connection = open(ledger)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (account, lock) in locks {
        fence.enter(&transaction, account, &lock.term())?;
    }
    for (account, amount) in changes {
        let balance: i64 =
            transaction.query_row("SELECT balance FROM account WHERE id = ?1", [account], |row| {
                row.get(0)
            })?;
        transaction.execute(
            "UPDATE account SET balance = ?2 WHERE id = ?1",
            rusqlite::params![account, balance + amount],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

fn open_accounts(ledger: &Path) -> Result<(), Failure> {
    let connection = open(ledger)?;
    connection
        .execute_batch("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL) STRICT")?;
    for account in 0..ACCOUNTS {
        connection.execute("INSERT INTO account VALUES (?1, 100)", [account])?;
    }
    SqliteFence::install(&connection)?;
    Ok(())
}

fn open(ledger: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(ledger)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    Ok(connection)
}
