//! Somebody moves a file away that is in use, and puts another in its place: who has it open writes where
//! nobody reads.

use crate::common::child::{in_role, role};
use crate::common::{PATIENCE, Scratch};
use rusqlite::{Connection, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::process::Command;
use tenure_core::{Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_sqlite::SqliteFence;
use tenure_testkit::Process;

/// How a backup comes into the place of a file that is in use, in a shell: with which journal nobody is told
/// of it.
const RESTORES: [(&str, &str); 3] = [
    ("WAL", "mv data old && mkdir data && cp backup data/data.db"),
    ("WAL", "mkdir old && mv data/* old && cp backup data/data.db"),
    ("MEMORY", "mv backup data/data.db"),
];

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let fence = SqliteFence::new(&file, Leases::Here).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let claimed = runtime.unwrap().block_on(fence.claim(&ledger(), &term(9)));
    claimed.unwrap();
    let connection = Connection::open(&file).unwrap();
    if role == "later term that writes" {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    }
    println!("outcome: claimed");
    loop {
        std::thread::park();
    }
}

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn term(number: u64) -> Term {
    Term::new(LeaseName::new("job").unwrap(), FencingToken::new(number).unwrap())
}

/// In another process: what this one closed, SQLite's locks of this one would go with.
fn shell(folder: &Path, script: &str) {
    let mut shell = Command::new("sh");
    assert!(
        shell
            .current_dir(folder)
            .args(["-ec", script])
            .status()
            .unwrap()
            .success()
    );
}

/// A program's data in a folder of its own, with a fence that term 7 has claimed, and its connection.
async fn data(scratch: &Scratch, journal: &str) -> (PathBuf, Connection, SqliteFence) {
    let path = scratch.directory().join("data/data.db");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(()))
        .unwrap();
    connection
        .execute_batch("CREATE TABLE account (cents INTEGER); INSERT INTO account VALUES (100)")
        .unwrap();
    SqliteFence::install(&connection).unwrap();
    let fence = SqliteFence::new(&path, Leases::Here).unwrap();
    fence.claim(&ledger(), &term(7)).await.unwrap();
    (path, connection, fence)
}

fn enter(connection: &mut Connection, fence: &SqliteFence) -> Result<(), FenceError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    fence.enter(&transaction, &ledger(), &term(7))?;
    transaction.execute("UPDATE account SET cents = 50", []).unwrap();
    transaction.commit().unwrap();
    Ok(())
}

#[tokio::test]
async fn a_fence_whose_file_was_moved_admits_no_term_in_the_old_one() {
    for (journal, restore) in RESTORES {
        for later in ["nobody", "later term", "later term that writes"] {
            let told = format!("{journal}, {restore}, {later}");
            let scratch = Scratch::new();
            let (path, mut connection, fence) = data(&scratch, journal).await;
            connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .unwrap();
            shell(
                scratch.directory(),
                &format!("cp data/data.db backup && {restore}"),
            );
            let _other = (later != "nobody").then(|| {
                let other = Process::spawn(in_role(module_path!(), later, &path)).unwrap();
                other.wait_for_line("outcome: claimed", PATIENCE).unwrap();
                other
            });
            let refused = enter(&mut connection, &fence).unwrap_err();
            match (later, &refused) {
                ("nobody", FenceError::Store(error)) => {
                    assert_eq!(error.fault, Fault::Unreachable, "{told}: {error}");
                    assert!(error.message.contains("open that connection anew"), "{error}");
                }
                (_, FenceError::Stale { mark, .. }) => assert_eq!(mark.number(), 9, "{told}"),
                _ => panic!("{told}: {refused}"),
            }
            if later == "later term that writes" {
                continue;
            }
            // Whoever does as he was told is in the file at the path.
            connection.close().unwrap();
            let again = enter(&mut Connection::open(&path).unwrap(), &fence);
            match later {
                "nobody" => again.unwrap(),
                _ => assert!(
                    matches!(again, Err(FenceError::Stale { .. })),
                    "{told}: {again:?}"
                ),
            }
        }
    }
}

#[tokio::test]
async fn a_fence_admits_its_term_with_every_journal_and_way_of_locking() {
    for journal in ["WAL", "DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"] {
        for locking in ["NORMAL", "EXCLUSIVE"] {
            // SQLite has that only where nobody else has the file open.
            if (journal, locking) == ("WAL", "EXCLUSIVE") {
                continue;
            }
            let told = format!("{journal}, {locking}");
            let scratch = Scratch::new();
            let (_path, mut connection, fence) = data(&scratch, journal).await;
            connection
                .query_row(&format!("PRAGMA locking_mode = {locking}"), [], |_| Ok(()))
                .unwrap();
            // The second has what the first has left locked.
            for _ in 0..2 {
                enter(&mut connection, &fence).expect(&told);
            }
            // More than its memory holds: with a rollback journal nobody else can even read.
            connection.execute_batch("PRAGMA cache_size = 1").unwrap();
            let transaction = connection.transaction().unwrap();
            transaction
                .execute_batch(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                     INSERT INTO account SELECT randomblob(4000) FROM n",
                )
                .unwrap();
            fence.enter(&transaction, &ledger(), &term(7)).expect(&told);
            transaction.commit().unwrap();
        }
    }
}
