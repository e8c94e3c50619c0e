//! How refusals come into the file, and who may look at it meanwhile.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_core::{Bump, Fault, Fence, FenceError, FencingToken, LeaseName, ResourceName, Term};
use tenure_testkit::Process;
use tenure_watermark::Watermark;

/// Long, as a loaded machine may need it.
const LONG: Duration = Duration::from_secs(30);

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn term(number: u64) -> Term {
    Term::new(
        LeaseName::new("nightly").unwrap(),
        FencingToken::new(number).unwrap(),
    )
}

/// What the file says was refused, as whoever looks sees it.
async fn seen(path: &Path) -> u64 {
    let seen = Watermark::look(path).unwrap().expect("the file is there");
    seen.mark(&ledger())
        .await
        .unwrap()
        .expect("it was claimed")
        .refused
}

/// Waits until whoever looks sees this many refusals.
async fn until_seen(path: &Path, refused: u64) {
    let end = Instant::now() + LONG;
    while seen(path).await != refused {
        assert!(
            Instant::now() < end,
            "{} of {refused} refusals are in the file",
            seen(path).await
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn whoever_looks_sees_the_marks_while_another_has_the_file_open_and_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    assert!(Watermark::look(&path).unwrap().is_none());
    assert!(!path.exists(), "looking has made the file");
    let fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(9)).await.unwrap();
    let seen = Watermark::look(&path).unwrap().unwrap();
    assert_eq!(seen.marks(None).await, fence.marks(None).await);
    seen.check(&ledger(), &term(9)).await.unwrap();
    let stale = seen.check(&ledger(), &term(5)).await;
    assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    for changed in [
        seen.claim(&ledger(), &term(10)).await.map(drop),
        seen.bump(&bump).await.map(drop),
    ] {
        assert!(
            matches!(&changed, Err(FenceError::Store(error)) if error.fault == Fault::ReadOnly),
            "{changed:?}"
        );
    }
    // The looker keeps nobody out, and whoever has the file open goes on.
    fence.claim(&ledger(), &term(11)).await.unwrap();
    drop(fence);
    let fence = Watermark::open(&path).unwrap();
    assert_eq!(fence.mark(&ledger()).await.unwrap().unwrap().token.number(), 11);
    drop(seen);
}

#[test]
fn what_is_no_watermark_is_told_to_whoever_looks() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    std::fs::write(&path, "tenure water").unwrap();
    for (path, fault) in [
        (path.as_path(), Fault::Unreadable),
        (scratch.path(), Fault::Invalid),
    ] {
        let told = Watermark::look(path).unwrap_err();
        assert!(
            matches!(&told, FenceError::Store(error) if error.fault == fault),
            "{told}"
        );
    }
}

#[tokio::test]
async fn refusals_come_into_the_file_without_a_claim_whoever_decides_them() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    let fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(9)).await.unwrap();
    fence.admit(&ledger(), &term(5)).unwrap_err();
    until_seen(&path, 1).await;
    // While the thread still waits for more, and also when it has gone.
    let refusal = fence.claim(&ledger(), &term(5)).await.unwrap_err();
    fence.count_refusal(&refusal);
    until_seen(&path, 3).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    fence.count_refusal(&refusal);
    until_seen(&path, 4).await;
}

#[tokio::test]
async fn refusals_come_into_the_file_once_the_disk_takes_them_though_nothing_more_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    let fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(9)).await.unwrap();
    // Permissions would not stop root: a directory in the way of the new file does.
    let in_the_way = scratch.path().join("marks.new");
    std::fs::create_dir(&in_the_way).unwrap();
    fence.admit(&ledger(), &term(5)).unwrap_err();
    // Long enough for the first save to fail.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(seen(&path).await, 0);
    std::fs::remove_dir(&in_the_way).unwrap();
    until_seen(&path, 1).await;
}

/// The thread that saves must not keep the file locked.
#[tokio::test]
async fn file_is_free_and_holds_every_refusal_once_the_watermark_is_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    let mut fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(9)).await.unwrap();
    for round in 1..=50 {
        fence.admit(&ledger(), &term(5)).unwrap_err();
        drop(fence);
        fence = Watermark::open(&path).unwrap();
        assert_eq!(seen(&path).await, round);
    }
}

#[tokio::test]
async fn refusals_that_were_seen_survive_a_killed_process() {
    if let Some(path) = std::env::var_os("TENURE_TEST_REFUSES_UNTIL_KILLED") {
        let fence = Watermark::open(&path).unwrap();
        fence.claim(&ledger(), &term(9)).await.unwrap();
        for _ in 0..7 {
            fence.admit(&ledger(), &term(5)).unwrap_err();
        }
        println!("refused seven");
        loop {
            std::thread::park();
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("marks");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "refusals::refusals_that_were_seen_survive_a_killed_process",
            "--nocapture",
        ])
        .env("TENURE_TEST_REFUSES_UNTIL_KILLED", &path);
    let child = Process::spawn(command).unwrap();
    child.wait_for_line("refused seven", LONG).unwrap();
    until_seen(&path, 7).await;
    child.kill_leader();
    child.wait_for_exit(LONG).unwrap();
    let fence = Watermark::open(&path).unwrap();
    assert_eq!(fence.mark(&ledger()).await.unwrap().unwrap().refused, 7);
}
