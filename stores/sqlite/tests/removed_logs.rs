//! Somebody removes the log of a file that is in use, or its index: two that have it open no longer see each
//! other.
//!
//! Within a process SQLite shares the index, so the other one is a process of its own.

use crate::common::child::{in_role, role};
use crate::common::{Asker, PATIENCE, Scratch, grant, name};
use rusqlite::{Connection, TransactionBehavior};
use std::fs;
use std::path::PathBuf;
use tenure_core::{
    Acquired, Certainty, Change, Claimed, Fence, FenceError, FencingToken, Interest, LeaseName, LeaseStore,
    Leases, Renewed, ResourceName, Scope, Term, WatchEvent,
};
use tenure_sqlite::{SqliteFence, SqliteOptions, SqliteStore};
use tenure_testkit::Process;

/// All that can be missing beside the file without an error that everybody gets.
const REMOVALS: [&[&str]; 2] = [&["-shm"], &["-wal", "-shm"]];

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let play = async {
        let outcome = match role.as_str() {
            "asker" => {
                let asker = Asker::new("second");
                let store = SqliteStore::open(&file).unwrap();
                let outcome = match store.acquire(&asker.acquire("job")).await.unwrap() {
                    Acquired::Granted(grant) => format!("granted {}", grant.token),
                    Acquired::Held(lease) => format!("held {}", lease.holder.id),
                    Acquired::Superseded => "superseded".to_owned(),
                };
                // It has the file open until it is killed.
                std::mem::forget(store);
                outcome
            }
            "later term" => {
                let fence = SqliteFence::create(&SqliteOptions::new(&file), Leases::Here).unwrap();
                format!("claimed {:?}", fence.claim(&ledger(), &term(9)).await.unwrap())
            }
            other => panic!("{other}"),
        };
        println!("outcome: {outcome}");
        std::future::pending::<()>().await;
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(play);
}

fn beside(scratch: &Scratch, suffix: &str) -> PathBuf {
    let mut path = scratch.file().into_os_string();
    path.push(suffix);
    path.into()
}

fn remove(scratch: &Scratch, suffixes: &[&str]) {
    for suffix in suffixes {
        fs::remove_file(beside(scratch, suffix)).unwrap();
    }
}

/// The other process, and what it said.
fn other(scratch: &Scratch, role: &str, begins: &str) -> (Process, String) {
    let process = Process::spawn(in_role(module_path!(), role, &scratch.file())).unwrap();
    let line = process.wait_for_line(begins, PATIENCE).unwrap();
    (process, line.text)
}

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn term(number: u64) -> Term {
    Term::new(LeaseName::new("job").unwrap(), FencingToken::new(number).unwrap())
}

/// A file that has been in use: what was elected in it is in its log alone.
async fn held(scratch: &Scratch) -> (SqliteStore, Asker, FencingToken) {
    drop(scratch.open());
    let store = scratch.open();
    let asker = Asker::new("first");
    let token = grant(&store, &asker, "job").await.token;
    (store, asker, token)
}

#[tokio::test]
async fn a_holder_whose_log_was_removed_is_told_and_shares_the_new_one() {
    let scratch = Scratch::new();
    let (store, asker, token) = held(&scratch).await;
    remove(&scratch, &["-wal", "-shm"]);
    let (_other, said) = other(&scratch, "asker", "outcome: granted");
    let renewed = store.renew(&[asker.renew("job", token)]).await;
    let [Ok(Renewed::Lost(Some(lease)))] = &renewed[..] else {
        panic!("{said}: {renewed:?}");
    };
    assert_eq!(lease.holder.id.as_str(), "second");
    assert!(said.contains(&format!("granted {}", lease.token)), "{said}");
    assert!(lease.token > token);
    // What the one writes the other sees, also when it is gone.
    let mine = grant(&store, &asker.next_attempt(), "mine").await;
    let seen = scratch
        .raw()
        .query_row("SELECT count(*) FROM lease", [], |row| row.get::<_, i64>(0));
    assert_eq!(seen, Ok(2));
    drop(store);
    let store = scratch.open();
    assert_eq!(store.get(&name("mine")).await.unwrap().unwrap().token, mine.token);
    assert_eq!(store.get(&name("job")).await.unwrap().unwrap().token, lease.token);
}

#[tokio::test]
async fn a_holder_the_index_of_whose_log_was_removed_is_seen_by_whoever_comes() {
    let scratch = Scratch::new();
    let (store, asker, token) = held(&scratch).await;
    remove(&scratch, &["-shm"]);
    let (_other, said) = other(&scratch, "asker", "outcome: held");
    assert!(said.contains("held first"), "{said}");
    let renewed = store.renew(&[asker.renew("job", token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Extended { .. })]),
        "{renewed:?}"
    );
    // The renewal is in the log that everybody reads: a second process finds the record that it left.
    let version = || {
        let raw = scratch.raw();
        raw.query_row("SELECT version FROM lease", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(version(), Ok(2));
    let released = store.release(&[asker.release("job", token)]).await;
    released[0].as_ref().unwrap();
    let (_another, said) = other(&scratch, "asker", "outcome: granted");
    let renewed = store.renew(&[asker.renew("job", token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Lost(Some(_)))]),
        "{said}: {renewed:?}"
    );
}

/// Closing a file, SQLite writes the log that it has open into the database, and removes the one that stands
/// at the path.
#[tokio::test]
async fn who_closes_a_file_whose_log_was_removed_leaves_in_it_what_others_have_written() {
    for closes in ["store", "watch", "fence"] {
        let scratch = Scratch::new();
        let (store, _asker, token) = held(&scratch).await;
        let mut open = (Some(store), None, None);
        match closes {
            "store" => {}
            "watch" => {
                open.1 = Some(
                    open.0
                        .take()
                        .unwrap()
                        .watch(&Scope::Prefix(String::new()), Interest::Everything)
                        .await
                        .unwrap(),
                )
            }
            _ => {
                open = (
                    None,
                    None,
                    Some(SqliteFence::create(&SqliteOptions::new(scratch.file()), Leases::Here).unwrap()),
                )
            }
        }
        remove(&scratch, &["-wal", "-shm"]);
        let (other, said) = other(&scratch, "asker", "outcome: granted");
        // It is gone, and has closed nothing.
        drop(other);
        drop(open);
        let seen = scratch.open().get(&name("job")).await.unwrap().unwrap();
        assert_eq!(seen.holder.id.as_str(), "second", "{closes}: {said}");
        assert!(seen.token > token, "{closes}: {said}");
    }
}

/// The index is shared within the process: the idle ones must leave it, too, or the busy one cannot.
#[tokio::test]
async fn idle_handles_watches_and_fences_of_a_process_keep_no_removed_log() {
    for removal in REMOVALS {
        let scratch = Scratch::new();
        let (store, asker, token) = held(&scratch).await;
        let idle = scratch.open();
        let mut watch = idle
            .watch(&Scope::Prefix(String::new()), Interest::Everything)
            .await
            .unwrap();
        let fence = SqliteFence::create(&SqliteOptions::new(scratch.file()), Leases::Here).unwrap();
        remove(&scratch, removal);
        let (_other, said) = other(&scratch, "asker", "outcome");
        let renewed = store.renew(&[asker.renew("job", token)]).await;
        // By the log that the other process has: what was elected before is in it, or was lost with the one
        // before.
        let is_as_the_other_said = match &renewed[..] {
            [Ok(Renewed::Lost(Some(_)))] => said.contains("granted"),
            [Ok(Renewed::Extended { .. })] => said.contains("held first"),
            _ => false,
        };
        assert!(is_as_the_other_said, "{removal:?}: {said}, {renewed:?}");
        let granted = grant(&store, &asker, "told").await;
        let told = async {
            loop {
                if let WatchEvent::Changed { name, change, token } = watch.next().await.unwrap()
                    && (name.as_str(), change, token) == ("told", Change::Taken, Some(granted.token))
                {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, told).await.unwrap();
        assert_eq!(
            idle.get(&name("told")).await.unwrap().unwrap().token,
            granted.token
        );
        // The table of the marks may have been in the log alone.
        match fence.mark(&ledger()).await {
            Ok(mark) => assert_eq!(mark, None),
            Err(FenceError::Store(error)) => assert!(error.message.contains("tenure_fence"), "{error}"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// A connection that is not ours cannot be made to leave: nobody is elected by its index.
#[tokio::test]
async fn a_process_that_keeps_a_removed_log_open_elects_nobody() {
    for removal in REMOVALS {
        let scratch = Scratch::new();
        let (store, asker, token) = held(&scratch).await;
        let keeper = scratch.raw();
        let count = "SELECT count(*) FROM lease";
        keeper.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap();
        remove(&scratch, removal);
        let renewed = store.renew(&[asker.renew("job", token)]).await;
        let error = renewed[0].as_ref().unwrap_err();
        assert_eq!(error.certainty, Certainty::NotApplied);
        assert!(error.message.contains("never remove them"), "{error}");
        SqliteStore::open(scratch.file()).unwrap_err();
        let (_other, said) = other(&scratch, "asker", "outcome");
        store.acquire(&asker.acquire("job")).await.unwrap_err();
        keeper.close().unwrap();
        let seen = store.get(&name("job")).await.unwrap().unwrap();
        let holder = if said.contains("granted") {
            "second"
        } else {
            "first"
        };
        assert_eq!(seen.holder.id.as_str(), holder, "{removal:?}: {said}");
    }
}

/// The data of a program, in a write-ahead log of its own choice, and its connection.
fn data(scratch: &Scratch) -> Connection {
    let connection = scratch.raw();
    let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    connection
        .query_row("PRAGMA journal_mode = WAL", [], mode)
        .unwrap();
    SqliteFence::install(&connection).unwrap();
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    connection
}

#[tokio::test]
async fn a_fence_whose_log_was_removed_admits_no_term_that_a_later_one_has_followed() {
    for removal in REMOVALS {
        let scratch = Scratch::new();
        let mut connection = data(&scratch);
        let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
        fence.claim(&ledger(), &term(7)).await.unwrap();
        remove(&scratch, removal);
        let (_later, said) = other(&scratch, "later term", "outcome");
        // The program's own connection has the old log open.
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .unwrap();
        let refused = fence.enter(&transaction, &ledger(), &term(7)).unwrap_err();
        assert!(
            matches!(&refused, FenceError::Store(_)),
            "{removal:?}: {said}, {refused}"
        );
        transaction.rollback().unwrap();
        let claimed = fence.claim(&ledger(), &term(8)).await;
        assert!(claimed.is_err(), "{removal:?}: {said}, {refused}, {claimed:?}");
        fence.check(&ledger(), &term(7)).await.unwrap_err();
        // The later term's process has closed the file: this one is the last, and must leave in it what it
        // finds.
        connection.close().unwrap();
        let mut connection = scratch.raw();
        let refused = fence.claim(&ledger(), &term(8)).await.unwrap_err();
        assert!(
            matches!(refused, FenceError::Stale { .. }),
            "{removal:?}: {refused}"
        );
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .unwrap();
        let refused = fence.enter(&transaction, &ledger(), &term(7)).unwrap_err();
        assert!(
            matches!(refused, FenceError::Stale { .. }),
            "{removal:?}: {refused}"
        );
        drop(transaction);
        assert_eq!(fence.claim(&ledger(), &term(9)).await, Ok(Claimed::Already));
    }
}
