//! Files that are not ours, damaged, of another version, or replaced: left as they are, and told.

use crate::common::{Asker, Scratch, grant, held, name};
use rusqlite::Connection;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::{Acquired, Certainty, Fault, LeaseStore, Renewed, StoreError, Verdict};
use tenure_sqlite::SqliteStore;

/// Opening is refused, and not a byte of the file changes.
fn refused(scratch: &Scratch) -> StoreError {
    let before = fs::read(scratch.file()).unwrap();
    let error = SqliteStore::open(scratch.file()).unwrap_err();
    assert_eq!(fs::read(scratch.file()).unwrap(), before, "the file was changed");
    assert_eq!(error.certainty, Certainty::NotApplied);
    assert!(
        error.message.contains(scratch.file().to_str().unwrap()),
        "{error}"
    );
    error
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let scratch = Scratch::new();
    fs::write(scratch.file(), "name,owner\njob,me\n".repeat(100)).unwrap();
    assert_eq!(refused(&scratch).fault, Fault::Unreadable);
}

#[test]
fn another_programs_database_is_left_as_it_is() {
    let scratch = Scratch::new();
    let connection = Connection::open(scratch.file()).unwrap();
    connection
        .execute_batch("CREATE TABLE leases (id INTEGER, owner TEXT); INSERT INTO leases VALUES (1, 'me')")
        .unwrap();
    drop(connection);
    let error = refused(&scratch);
    assert_eq!(error.fault, Fault::Unreadable);
    assert!(error.message.contains("a file of their own"), "{error}");
}

#[test]
fn a_newer_schema_is_refused_with_its_number() {
    let scratch = Scratch::new();
    drop(scratch.open());
    scratch.sql("PRAGMA user_version = 77");
    let error = refused(&scratch);
    assert_eq!(error.fault, Fault::Unsupported);
    assert!(
        error.message.contains("77") && error.message.contains("upgrade"),
        "{error}"
    );
}

/// As migration tools count their steps: who has the file open goes on, and nobody can follow. Nobody who
/// reads the way out upgrades, or restarts what still works.
#[tokio::test]
async fn a_number_that_another_program_has_set_is_told_with_the_way_back() {
    for number in [7, 0, -1] {
        let scratch = Scratch::new();
        let store = scratch.open();
        let asker = Asker::new("first");
        let first = grant(&store, &asker, "job").await;
        scratch.sql(&format!("PRAGMA user_version = {number}"));
        let way_back = format!(
            "sqlite3 '{}' \"PRAGMA user_version = 1\"",
            scratch.file().display()
        );
        let error = refused(&scratch);
        assert!(error.message.contains(&way_back), "{error}");
        let findings = store.examine().await.unwrap();
        let layout = findings
            .iter()
            .find(|finding| finding.subject == "layout")
            .unwrap();
        assert_eq!(layout.verdict, Verdict::Bad);
        let repair = layout.repair.as_ref().unwrap();
        assert!(
            repair.contains(&way_back) && repair.starts_with("restart nothing"),
            "{repair}"
        );
        scratch.sql("PRAGMA user_version = 1");
        let lease = held(&scratch.open(), &Asker::new("second"), "job").await;
        assert_eq!(lease.token, first.token);
    }
    // Here the number is right, and the way out is another.
    let scratch = Scratch::new();
    drop(scratch.open());
    scratch.sql("ALTER TABLE lease RENAME COLUMN note TO notes; PRAGMA user_version = 2");
    let error = refused(&scratch);
    assert!(!error.message.contains("PRAGMA"), "{error}");
}

#[test]
fn missing_tables_and_columns_are_told_at_opening() {
    for damage in [
        "DROP TABLE lease",
        "ALTER TABLE lease DROP COLUMN attempt",
        "DROP TABLE sighting",
    ] {
        let scratch = Scratch::new();
        drop(scratch.open());
        scratch.sql(damage);
        assert_eq!(refused(&scratch).fault, Fault::Unreadable, "{damage}");
    }
}

#[tokio::test]
async fn a_table_dropped_under_an_open_store_is_told_and_not_made_anew() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    scratch.sql("DROP TABLE lease");
    let error = store.acquire(&asker.acquire("job")).await.unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreadable, Certainty::NotApplied),
        "{error}"
    );
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert_eq!(renewed[0].as_ref().unwrap_err().fault, Fault::Unreadable);
}

#[tokio::test]
async fn times_that_contradict_each_other_are_not_believed() {
    for damage in [
        "expires_ns = expires_ns + 1",
        "renewed_ns = acquired_ns - 1",
        "version = 9223372036854775807",
        "version = 0",
        "released = 2",
        "wish = 'vacation'",
        "boot_id = ''",
        "terms = 0",
    ] {
        let scratch = Scratch::new();
        let store = scratch.open();
        let _first = grant(&store, &Asker::new("first"), "job").await;
        scratch.sql(&format!("UPDATE lease SET {damage}"));
        let error = store
            .acquire(&Asker::new("second").acquire("job"))
            .await
            .unwrap_err();
        assert_eq!(error.fault, Fault::Unreadable, "{damage}: {error}");
        for part in ["lease \"job\"", "sqlite3", scratch.file().to_str().unwrap()] {
            assert!(error.message.contains(part), "{part} is not in: {error}");
        }
    }
}

/// The file and what is beside it.
fn remove(scratch: &Scratch) {
    for suffix in ["", "-wal", "-shm", "-wake"] {
        let mut path = scratch.file().into_os_string();
        path.push(suffix);
        let _missing = fs::remove_file(path);
    }
}

/// Whoever deletes the file leaves open connections with the old one. They must not go on electing there.
#[tokio::test]
async fn a_file_that_was_replaced_is_followed() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    remove(&scratch);
    let second = grant(&other, &Asker::new("second"), "job").await;
    assert!(second.token > first.token, "tokens rise even in a new file");
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    match &renewed[..] {
        [Ok(Renewed::Lost(Some(lease)))] => assert_eq!(lease.token, second.token),
        other => panic!("{other:?}"),
    }
    let answer = store.acquire(&asker.acquire("job")).await.unwrap();
    assert!(matches!(answer, Acquired::Held(_)), "{answer:?}");
    assert_eq!(
        store.get(&name("job")).await.unwrap().unwrap().token,
        second.token
    );
}

/// Removals with a pause of up to a tenth of a second, and with one of up to a second where no opening is
/// that fast.
const ROUNDS: u64 = 60;
const ROUNDS_MAX: u64 = 200;

/// However often: what is elected in afterwards is the file that everybody else finds.
#[tokio::test]
async fn a_file_that_is_removed_while_it_is_opened_is_not_elected_in() {
    let mut elections = 0;
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS && elections > 0 {
            return;
        }
        let scratch = Scratch::new();
        let opened = AtomicBool::new(false);
        let store = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !opened.load(Ordering::SeqCst) {
                    fs::remove_file(scratch.file()).unwrap_or_default();
                    // Longer and longer: how long an opening takes is the disk's affair.
                    std::thread::sleep(Duration::from_micros(30 * round * round));
                }
            });
            let store = SqliteStore::open(scratch.file());
            opened.store(true, Ordering::SeqCst);
            store
        });
        // It may say that it cannot be opened in such a place.
        let Ok(store) = store else { continue };
        let granted = match store.acquire(&Asker::new("first").acquire("job")).await {
            Ok(Acquired::Granted(granted)) => granted,
            Ok(other) => panic!("round {round}: {other:?}"),
            Err(_) => continue,
        };
        let seen = scratch.open().get(&name("job")).await.unwrap();
        assert_eq!(
            seen.map(|lease| lease.token),
            Some(granted.token),
            "round {round}"
        );
        elections += 1;
    }
    assert!(elections > 0, "no file could be opened in any round");
}
