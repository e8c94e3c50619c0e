//! What `tenure doctor` finds.

use crate::common::{Asker, PATIENCE, Scratch, grant};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};
use tenure_core::{Finding, LeaseStore, Page, Verdict};

/// SQLite's default, which the store leaves as it is.
const PAGE_BYTES: u64 = 4_096;

fn of<'a>(findings: &'a [Finding], subject: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.subject == subject);
    found.unwrap_or_else(|| panic!("no {subject} in {findings:#?}"))
}

#[tokio::test]
async fn a_sound_store_is_found_sound_and_left_as_it_was() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let findings = store.examine().await.unwrap();
    for subject in [
        "clock",
        "layout",
        "durability",
        "integrity",
        "records",
        "round trip",
    ] {
        assert_eq!(of(&findings, subject).verdict, Verdict::Good, "{findings:#?}");
    }
    let all = Page::first("", 10);
    assert!(store.list(&all).await.unwrap().leases.is_empty());
}

#[tokio::test]
async fn an_unreadable_record_is_named_with_its_repair() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("a");
    let _granted = (
        grant(&store, &asker, "good").await,
        grant(&store, &asker, "odd").await,
    );
    scratch.sql("UPDATE lease SET token = -7 WHERE name = 'odd'");
    let findings = store.examine().await.unwrap();
    let records = of(&findings, "records");
    assert_eq!(records.verdict, Verdict::Bad);
    assert!(
        records.detail.contains("\"odd\"") && !records.detail.contains("good"),
        "{records:?}"
    );
    assert!(
        records.repair.as_ref().unwrap().contains("sqlite3"),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_locked_file_is_told_and_the_rest_still_examined() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let other = scratch.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let findings = store.examine().await.unwrap();
    let lock = of(&findings, "write lock");
    assert_eq!(lock.verdict, Verdict::Bad);
    assert!(lock.detail.contains("fuser -v"), "{lock:?}");
    assert_eq!(of(&findings, "integrity").verdict, Verdict::Good);
}

/// Leases go on where nothing reads the damaged page: so nobody else would tell.
#[tokio::test]
async fn a_damaged_file_is_told() {
    let scratch = Scratch::new();
    let store = scratch.open();
    for number in 0..200 {
        grant(&store, &Asker::new("a"), &format!("job/{number:03}")).await;
    }
    drop(store);
    // Its thread closes the last connection a moment later, and then all is in the file itself.
    let began = Instant::now();
    while fs::exists(scratch.directory().join("leases.db-wal")).unwrap() {
        assert!(began.elapsed() < PATIENCE, "the log stays beside the file");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    let end = file.metadata().unwrap().len();
    file.write_all_at(&[0xFF; 64], end - PAGE_BYTES).unwrap();
    let store = scratch.open();
    let findings = store.examine().await.unwrap();
    let integrity = of(&findings, "integrity");
    assert_eq!(integrity.verdict, Verdict::Bad, "{findings:#?}");
}
