//! Holders in processes of their own: killed, and paused.
use crate::harness::{LONG_BEFORE, lock_timing, long_lock_timing, soon};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::sqlite::SqliteStore;
use tenure::{Authority, LockManager, LockTiming, LockTimingOptions};
use tenure_testkit::{Process, ScratchDir};

const FILE: &str = "TENURE_TEST_LOCKS_FILE";
const TTL: &str = "TENURE_TEST_LOCKS_TTL_MS";
const PATIENCE: Duration = Duration::from_secs(20);

/// That of a child that is killed, and of who waits for its lock. Those who are late by seconds are still
/// late by less than another ttl.
fn slow_timing() -> LockTiming {
    LockTimingOptions::new(Duration::from_secs(15)).check().unwrap()
}

fn manager(file: &Path, candidate: &str, timing: LockTiming) -> LockManager {
    let store = Arc::new(SqliteStore::open(file).unwrap());
    LockManager::builder(store)
        .candidate(candidate)
        .timing(timing)
        .build()
        .unwrap()
}

/// What a child does: takes the lock, says its token, and says when it is lost. Nothing unless it is one.
#[tokio::test]
async fn as_a_child() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let ttl = Duration::from_millis(std::env::var(TTL).unwrap().parse().unwrap());
    let timing = LockTimingOptions::new(ttl).check().unwrap();
    let manager = manager(Path::new(&file), "child", timing);
    let lock = manager.lock("a").await.unwrap();
    println!("held {}", lock.token());
    let loss = lock.lost().await;
    let none = lock.authority() == Authority::None;
    println!("over {none} {loss}");
}

fn child(file: &Path, timing: LockTiming) -> (Process, u64) {
    let ttl = timing.lease().ttl().as_millis();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["lock_processes::as_a_child", "--exact", "--nocapture"])
        .env(FILE, file)
        .env(TTL, ttl.to_string());
    let child = Process::spawn(command).unwrap();
    let line = child.wait_for_line("held ", PATIENCE).unwrap();
    let (_, token) = line.text.split_once("held ").unwrap();
    (child, token.trim().parse().unwrap())
}

#[tokio::test]
async fn a_killed_holders_lock_is_taken_when_it_has_expired_and_not_before() {
    let folder = ScratchDir::new("lock-killed");
    let file = folder.join("locks.db");
    let (child, token) = child(&file, slow_timing());
    let ours = manager(&file, "ours", slow_timing());
    let waiting = tokio::spawn(async move { (ours.lock("a").await, ours) });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    let killed_at = Instant::now();
    child.kill_tree();
    let (lock, _ours) = soon("the take-over", waiting).await.unwrap();
    assert!(lock.unwrap().token().number() > token);
    let took = killed_at.elapsed();
    let ttl = slow_timing().lease().ttl().duration();
    // It was extended a beat before, or a little more.
    assert!(took > ttl / 3 && took < ttl + LONG_BEFORE, "{took:?}");
}

#[tokio::test]
async fn a_paused_holder_believes_nothing_when_it_wakes() {
    let folder = ScratchDir::new("lock-paused");
    let file = folder.join("locks.db");
    let (child, token) = child(&file, lock_timing());
    let ours = manager(&file, "ours", long_lock_timing());
    child.freeze();
    let lock = soon("the take-over", ours.lock("a")).await.unwrap();
    assert!(lock.token().number() > token);
    child.thaw();
    let line = child.wait_for_line("over ", PATIENCE).unwrap();
    assert!(line.text.contains("over true"), "{}", line.text);
    assert!(
        matches!(lock.authority(), Authority::Held { .. }),
        "it did nothing to its successor"
    );
}
