//! The fence in SQLite: whatever the order of an old term's and a new term's steps, no accepted write is
//! lost.

use crate::common::Scratch;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::time::Duration;
use tenure_core::{Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_sqlite::{SqliteFence, SqliteOptions};

struct Ledger {
    scratch: Scratch,
    resource: ResourceName,
}

impl Ledger {
    fn new(journal_mode: &str) -> Self {
        let scratch = Scratch::new();
        let connection = Connection::open(scratch.file()).unwrap();
        let _mode: String = connection
            .query_row(&format!("PRAGMA journal_mode = {journal_mode}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        SqliteFence::install(&connection).unwrap();
        SqliteFence::install(&connection).unwrap();
        connection
            .execute_batch("CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (100);")
            .unwrap();
        Self {
            scratch,
            resource: ResourceName::new("ledger").unwrap(),
        }
    }

    fn fence(&self) -> SqliteFence {
        SqliteFence::new(self.scratch.file(), Leases::Here).unwrap()
    }

    fn connection(&self) -> Connection {
        let connection = Connection::open(self.scratch.file()).unwrap();
        // Refusals are counted beside, and hold the file for a moment.
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    fn balance(&self) -> i64 {
        balance(&self.connection())
    }
}

fn balance(connection: &Connection) -> i64 {
    connection
        .query_row("SELECT balance FROM account", [], |row| row.get(0))
        .unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn term(number: u64) -> Term {
    Term::new(LeaseName::new("nightly").unwrap(), token(number))
}

fn begin(connection: &mut Connection, behaviour: TransactionBehavior) -> Transaction<'_> {
    connection.transaction_with_behavior(behaviour).unwrap()
}

#[tokio::test]
async fn a_mark_only_rises_and_a_claim_is_idempotent() {
    let ledger = Ledger::new("WAL");
    let fence = ledger.fence();
    let resource = &ledger.resource;
    assert_eq!(fence.mark(resource).await.unwrap(), None);
    assert_eq!(
        fence.claim(resource, &term(5)).await.unwrap(),
        Claimed::Raised { from: None }
    );
    assert_eq!(fence.claim(resource, &term(5)).await.unwrap(), Claimed::Already);
    let raised = ledger.fence().claim(resource, &term(9)).await.unwrap();
    assert_eq!(raised, Claimed::Raised { from: Some(token(5)) });
    let refused = fence.claim(resource, &term(5)).await.unwrap_err();
    assert!(
        matches!(refused, FenceError::Stale { mark, .. } if mark == token(9)),
        "{refused}"
    );
    assert_eq!(fence.mark(resource).await.unwrap().unwrap().token, token(9));
}

#[tokio::test]
async fn only_the_term_that_claimed_enters() {
    let ledger = Ledger::new("WAL");
    let fence = ledger.fence();
    let mut connection = ledger.connection();
    let transaction = begin(&mut connection, TransactionBehavior::Immediate);
    let nobody = fence.enter(&transaction, &ledger.resource, &term(7)).unwrap_err();
    assert!(matches!(nobody, FenceError::Unclaimed { .. }), "{nobody}");
    transaction.rollback().unwrap();
    let _claimed = fence.claim(&ledger.resource, &term(7)).await.unwrap();
    let transaction = begin(&mut connection, TransactionBehavior::Immediate);
    fence.enter(&transaction, &ledger.resource, &term(7)).unwrap();
    let early = fence.enter(&transaction, &ledger.resource, &term(8)).unwrap_err();
    assert!(matches!(early, FenceError::Unclaimed { .. }), "{early}");
    let late = fence.enter(&transaction, &ledger.resource, &term(6)).unwrap_err();
    assert!(
        matches!(late, FenceError::Stale { mark, .. } if mark == token(7)),
        "{late}"
    );
    transaction.commit().unwrap();
}

/// The stale leader had its transaction open, and had read, when the new one claimed.
#[tokio::test]
async fn a_transaction_open_before_the_claim_can_never_commit() {
    let ledger = Ledger::new("WAL");
    let fence = ledger.fence();
    let _old = fence.claim(&ledger.resource, &term(1)).await.unwrap();
    let mut old = ledger.connection();
    let transaction = begin(&mut old, TransactionBehavior::Deferred);
    assert_eq!(balance(&transaction), 100);
    let _new = ledger.fence().claim(&ledger.resource, &term(2)).await.unwrap();
    let refused = fence.enter(&transaction, &ledger.resource, &term(1)).unwrap_err();
    assert!(
        matches!(refused, FenceError::Stale { mark, .. } if mark == token(2)),
        "{refused}"
    );
    // Nor can it write at all.
    assert!(transaction.execute("UPDATE account SET balance = 0", []).is_err());
    drop(transaction);
    assert_eq!(ledger.balance(), 100);
}

/// Somebody else's harmless write in between is not a claim: the transaction begins again.
#[tokio::test]
async fn a_stale_read_without_a_claim_is_busy_and_not_stale() {
    let ledger = Ledger::new("WAL");
    let fence = ledger.fence();
    let _claimed = fence.claim(&ledger.resource, &term(1)).await.unwrap();
    let mut connection = ledger.connection();
    let transaction = begin(&mut connection, TransactionBehavior::Deferred);
    let _seen = balance(&transaction);
    ledger.scratch.sql("CREATE TABLE unrelated (x)");
    let busy = fence.enter(&transaction, &ledger.resource, &term(1)).unwrap_err();
    assert!(
        matches!(&busy, FenceError::Store(error) if error.fault == Fault::Busy),
        "{busy}"
    );
    drop(transaction);
    let transaction = begin(&mut connection, TransactionBehavior::Immediate);
    fence.enter(&transaction, &ledger.resource, &term(1)).unwrap();
}

/// A term that has entered finishes first: the claim waits, and what the new leader reads then includes it.
#[tokio::test]
async fn a_claim_waits_for_a_transaction_that_has_entered() {
    for journal_mode in ["WAL", "DELETE"] {
        let ledger = Ledger::new(journal_mode);
        let fence = ledger.fence();
        let _old = fence.claim(&ledger.resource, &term(1)).await.unwrap();
        let mut old = ledger.connection();
        let transaction = begin(&mut old, TransactionBehavior::Deferred);
        fence.enter(&transaction, &ledger.resource, &term(1)).unwrap();
        let _changed = transaction
            .execute("UPDATE account SET balance = balance - 30", [])
            .unwrap();
        let successor = ledger.fence();
        let later = term(2);
        let claim = successor.claim(&ledger.resource, &later);
        let commit = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            transaction.commit().unwrap();
        };
        let (claimed, ()) = tokio::join!(claim, commit);
        assert_eq!(claimed.unwrap(), Claimed::Raised { from: Some(token(1)) });
        assert_eq!(ledger.balance(), 70);
        let mut old = ledger.connection();
        let transaction = begin(&mut old, TransactionBehavior::Immediate);
        let refused = fence.enter(&transaction, &ledger.resource, &term(1)).unwrap_err();
        assert!(
            matches!(refused, FenceError::Stale { .. }),
            "{journal_mode}: {refused}"
        );
    }
}

/// Every order of the old term's (read, enter and write) and the new term's (claim, read, enter and write):
/// the balance is always the sum of the accepted writes.
#[tokio::test]
async fn no_order_of_two_terms_loses_an_accepted_write() {
    for order in [
        "RWcrw", "RcWrw", "RcrWw", "RcrwW", "cRWrw", "cRrWw", "cRrwW", "crRWw", "crRwW", "crwRW",
    ] {
        let ledger = Ledger::new("WAL");
        let (old_fence, new_fence) = (ledger.fence(), ledger.fence());
        let _old = old_fence.claim(&ledger.resource, &term(1)).await.unwrap();
        let mut connections = [ledger.connection(), ledger.connection()];
        let (mut old_read, mut new_read) = (0, 0);
        let mut accepted = 0;
        for step in order.chars() {
            match step {
                'R' => old_read = balance(&connections[0]),
                'r' => new_read = balance(&connections[1]),
                'c' => drop(new_fence.claim(&ledger.resource, &term(2)).await.unwrap()),
                'W' => accepted += write(&mut connections[0], &old_fence, &ledger, &term(1), old_read - 10),
                'w' => accepted += write(&mut connections[1], &new_fence, &ledger, &term(2), new_read - 10),
                other => panic!("no step {other}"),
            }
        }
        assert_eq!(ledger.balance(), 100 - 10 * accepted, "{order}");
        assert!(accepted >= 1, "{order}: the new term was refused");
    }
}

fn write(connection: &mut Connection, fence: &SqliteFence, ledger: &Ledger, term: &Term, value: i64) -> i64 {
    let transaction = begin(connection, TransactionBehavior::Immediate);
    if fence.enter(&transaction, &ledger.resource, term).is_err() {
        return 0;
    }
    let _changed = transaction
        .execute("UPDATE account SET balance = ?1", [value])
        .unwrap();
    transaction.commit().unwrap();
    1
}

/// Also where it was there when the fence was opened.
#[tokio::test]
async fn a_database_without_a_table_of_marks_is_not_called_damaged() {
    let ledger = Ledger::new("WAL");
    let fence = ledger.fence();
    ledger.scratch.sql("DROP TABLE tenure_fence");
    let unopened = SqliteFence::new(ledger.scratch.file(), Leases::Here).unwrap_err();
    let unclaimed = fence.claim(&ledger.resource, &term(3)).await.unwrap_err();
    let mut connection = ledger.connection();
    let transaction = begin(&mut connection, TransactionBehavior::Immediate);
    let not_entered = fence.enter(&transaction, &ledger.resource, &term(3)).unwrap_err();
    for error in [FenceError::Store(unopened), unclaimed, not_entered] {
        let FenceError::Store(error) = error else {
            panic!("{error}")
        };
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains("no table of marks yet"), "{error}");
        for word in ["damaged", "move it"] {
            assert!(!error.message.contains(word), "{error}");
        }
    }
}

#[tokio::test]
async fn a_mark_that_is_no_token_admits_nobody() {
    let ledger = Ledger::new("WAL");
    let fence = ledger.fence();
    let _claimed = fence.claim(&ledger.resource, &term(3)).await.unwrap();
    ledger.scratch.sql("UPDATE tenure_fence SET token = -1");
    let error = fence.claim(&ledger.resource, &term(4)).await.unwrap_err();
    assert!(
        matches!(&error, FenceError::Store(error) if error.fault == Fault::Unreadable),
        "{error}"
    );
    let mut connection = ledger.connection();
    let transaction = begin(&mut connection, TransactionBehavior::Immediate);
    let error = fence.enter(&transaction, &ledger.resource, &term(3)).unwrap_err();
    assert!(
        matches!(&error, FenceError::Store(error) if error.fault == Fault::Unreadable),
        "{error}"
    );
}

/// The folder is there, and to see to it would help nobody.
#[test]
fn a_missing_database_is_told_and_not_made() {
    let scratch = Scratch::new();
    for opened in [
        SqliteFence::new(scratch.file(), Leases::Here).map(drop),
        SqliteFence::create(&SqliteOptions::new(scratch.file()), Leases::Here).map(drop),
    ] {
        let Err(error) = opened else { panic!("{opened:?}") };
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
        assert!(error.message.contains("there is no file"), "{error}");
    }
    assert!(!scratch.file().exists());
}

#[tokio::test]
async fn a_missing_table_and_a_transaction_elsewhere_are_told() {
    let scratch = Scratch::new();
    let connection = Connection::open(scratch.file()).unwrap();
    connection.execute_batch("CREATE TABLE x (y)").unwrap();
    let error = SqliteFence::new(scratch.file(), Leases::Here).unwrap_err();
    assert!(error.to_string().contains("SqliteFence::install"), "{error}");
    let ledger = Ledger::new("WAL");
    let mut elsewhere = connection;
    let transaction = begin(&mut elsewhere, TransactionBehavior::Immediate);
    let error = ledger
        .fence()
        .enter(&transaction, &ledger.resource, &term(1))
        .unwrap_err();
    assert!(
        matches!(&error, FenceError::Store(error) if error.fault == Fault::Invalid),
        "{error}"
    );
}

#[tokio::test]
async fn a_fence_is_opened_beside_somebody_who_writes_just_then() {
    let ledger = Ledger::new("DELETE");
    let writer = ledger.connection();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let file = ledger.scratch.file();
    let opening = std::thread::spawn(move || SqliteFence::new(file, Leases::Here));
    std::thread::sleep(Duration::from_millis(50));
    writer.execute_batch("COMMIT").unwrap();
    opening.join().unwrap().unwrap();
}
