//! What the file keeps, through restarts, crashes and damage.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, ListedMark, ResourceName,
    Term,
};
use tenure_testkit::{Process, on_a_disk_that_fails_to_sync};
use tenure_watermark::Watermark;

/// For what happens within milliseconds on an idle machine.
const SOON: Duration = Duration::from_secs(30);

fn ledger() -> ResourceName {
    ResourceName::new("größtes ledger").unwrap()
}

fn term(number: u64) -> Term {
    Term::new(
        LeaseName::new("week end").unwrap(),
        FencingToken::new(number).unwrap(),
    )
}

fn scratch() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("marks");
    (directory, path)
}

fn fault(opened: Result<Watermark, FenceError>) -> Fault {
    match opened {
        Err(FenceError::Store(error)) => error.fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn marks_refusals_and_bumps_survive_a_restart() {
    let (_scratch, path) = scratch();
    let bumped = ResourceName::new("bumped").unwrap();
    let before = {
        let fence = Watermark::open(&path).unwrap();
        fence.claim(&ledger(), &term(9)).await.unwrap();
        fence.admit(&ledger(), &term(5)).unwrap_err();
        fence.bump(&bump(&bumped)).await.unwrap();
        fence.marks(None).await.unwrap()
    };
    let fence = Watermark::open(&path).unwrap();
    assert_eq!(fence.marks(None).await.unwrap(), before);
    let kept: Vec<_> = before.marks.iter().filter_map(ListedMark::understood).collect();
    assert_eq!(kept[1].refused, 1);
    assert!(matches!(
        fence.admit(&ledger(), &term(5)),
        Err(FenceError::Stale { .. })
    ));
    drop(fence.admit(&ledger(), &term(9)).unwrap());
    assert_eq!(fence.claim(&ledger(), &term(9)).await, Ok(Claimed::Already));
    let nobody = fence.admit(&bumped, &term(kept[0].token.number())).unwrap_err();
    assert!(matches!(nobody, FenceError::Unclaimed { .. }), "{nobody}");
}

fn bump(resource: &ResourceName) -> Bump {
    Bump {
        resource: resource.clone(),
        above: None,
        lease: None,
    }
}

/// Not with the refusals, nor when the watermark goes: the operator is told, and the process may be killed.
#[test]
fn a_bump_is_in_the_file_before_it_is_told_and_fails_where_the_disk_does() {
    let (_scratch, path) = scratch();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fence = Watermark::open(&path).unwrap();
    let failed = on_a_disk_that_fails_to_sync(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(fence.bump(&bump(&ledger())))
    });
    assert!(matches!(&failed, Err(FenceError::Store(error)) if error.certainty == Certainty::Unknown));
    let mark = runtime.block_on(fence.bump(&bump(&ledger()))).unwrap();
    let seen = Watermark::look(&path).unwrap().unwrap();
    assert_eq!(runtime.block_on(seen.mark(&ledger())), Ok(Some(mark)));
}

#[tokio::test]
async fn a_bumped_mark_is_claimed_by_the_term_of_its_number_after_a_restart() {
    for lease in [None, Some(term(1).lease)] {
        let (_scratch, path) = scratch();
        let mark = {
            let fence = Watermark::open(&path).unwrap();
            let bump = Bump {
                lease: lease.clone(),
                ..bump(&ledger())
            };
            fence.bump(&bump).await.unwrap().token
        };
        let fence = Watermark::open(&path).unwrap();
        let next = term(mark.number());
        fence.admit(&ledger(), &next).unwrap_err();
        let claimed = fence.claim(&ledger(), &next).await;
        assert_eq!(claimed, Ok(Claimed::Raised { from: Some(mark) }), "{lease:?}");
        drop(fence.admit(&ledger(), &next).unwrap());
    }
}

#[tokio::test]
async fn one_at_a_time_opens_it() {
    let (_scratch, path) = scratch();
    let fence = Watermark::open(&path).unwrap();
    assert_eq!(fault(Watermark::try_open(&path)), Fault::Busy);
    drop(fence);
    Watermark::open(&path).unwrap();
}

#[tokio::test]
async fn whoever_opens_it_waits_for_one_that_has_it_for_a_moment() {
    let (_scratch, path) = scratch();
    let fence = Watermark::open(&path).unwrap();
    let moment = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(fence);
    });
    Watermark::open(&path).unwrap();
    moment.join().unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_permissions_and_its_lock_has_them() {
    let (scratch, path) = scratch();
    for (number, kept) in [(7, 0o600), (8, 0o660), (9, 0o644)] {
        drop(Watermark::open(&path).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        let lock = scratch.path().join("marks.lock");
        fs::remove_file(&lock).unwrap();
        let fence = Watermark::open(&path).unwrap();
        fence.claim(&ledger(), &term(number)).await.unwrap();
        assert_eq!((mode(&path), mode(&lock)), (kept, kept));
    }
}

/// Whoever may write to the folder leads nobody astray who has more rights.
#[tokio::test]
async fn what_is_in_the_way_of_a_new_file_is_no_link_that_is_followed() {
    let (scratch, path) = scratch();
    let fence = Watermark::open(&path).unwrap();
    let elsewhere = scratch.path().join("elsewhere");
    fs::write(&elsewhere, "of another").unwrap();
    symlink(&elsewhere, scratch.path().join("marks.new")).unwrap();
    fence.claim(&ledger(), &term(7)).await.unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "of another");
    assert!(!path.is_symlink());
}

/// Somebody takes the file for what a crash has left behind.
#[tokio::test]
async fn a_process_whose_lock_was_removed_takes_no_mark_back() {
    let (scratch, path) = scratch();
    let first = Watermark::open(&path).unwrap();
    first.claim(&ledger(), &term(7)).await.unwrap();
    fs::remove_file(scratch.path().join("marks.lock")).unwrap();
    let alone = first.claim(&ledger(), &term(8)).await.unwrap_err();
    // Term 7 is refused here from now on, though nothing is in the file.
    assert!(
        matches!(&alone, FenceError::Store(error) if (error.fault, error.certainty) == (Fault::Busy, Certainty::Unknown)),
        "{alone}"
    );
    let second = Watermark::open(&path).unwrap();
    second.claim(&ledger(), &term(9)).await.unwrap();
    let kept = fs::read(&path).unwrap();
    // Neither a claim of the first, nor what it refuses, nor its end.
    let beside = first.claim(&ledger(), &term(8)).await.unwrap_err();
    assert!(
        matches!(&beside, FenceError::Store(error) if error.fault == Fault::Busy),
        "{beside}"
    );
    first.admit(&ledger(), &term(7)).unwrap_err();
    drop(first);
    assert_eq!(fs::read(&path).unwrap(), kept);
    // The second keeps others out, and goes on.
    assert_eq!(fault(Watermark::try_open(&path)), Fault::Busy);
    second.claim(&ledger(), &term(10)).await.unwrap();
    drop(second);
    let reopened = Watermark::open(&path).unwrap();
    assert_eq!(
        reopened.mark(&ledger()).await.unwrap().unwrap().token.number(),
        10
    );
}

/// Its mark is in the file already, so that there is nothing to write.
#[tokio::test]
async fn a_claim_that_comes_again_is_not_confirmed_once_the_lock_was_removed() {
    let (scratch, path) = scratch();
    let first = Watermark::open(&path).unwrap();
    first.claim(&ledger(), &term(5)).await.unwrap();
    let inside = first.admit(&ledger(), &term(5)).unwrap();
    let (ledger, again) = (ledger(), term(7));
    // Given up once it waits for the write inside.
    let mut claim = first.claim(&ledger, &again);
    while Watermark::look(&path)
        .unwrap()
        .unwrap()
        .mark(&ledger)
        .await
        .unwrap()
        .unwrap()
        .token
        != again.token
    {
        let waits = tokio::time::timeout(Duration::from_millis(1), &mut claim).await;
        assert!(waits.is_err());
    }
    drop(claim);
    fs::remove_file(scratch.path().join("marks.lock")).unwrap();
    let second = Watermark::open(&path).unwrap();
    second.claim(&ledger, &term(9)).await.unwrap();
    drop(inside);
    let claimed = first.claim(&ledger, &again).await.unwrap_err();
    assert!(
        matches!(&claimed, FenceError::Store(error) if error.fault == Fault::Busy),
        "{claimed}"
    );
    first.admit(&ledger, &again).unwrap_err();
}

#[tokio::test]
async fn a_link_is_the_file_that_it_leads_to() {
    let (scratch, path) = scratch();
    let link = scratch.path().join("link");
    let elsewhere = tempfile::tempdir().unwrap();
    let distant = elsewhere.path().join("distant");
    let fence = Watermark::open(&path).unwrap();
    for link in [&link, &distant] {
        symlink(&path, link).unwrap();
        assert_eq!(fault(Watermark::try_open(link)), Fault::Busy);
    }
    drop(fence);
    for (link, number) in [(&link, 9), (&distant, 10)] {
        let fence = Watermark::open(link).unwrap();
        assert_eq!(fault(Watermark::try_open(&path)), Fault::Busy);
        fence.claim(&ledger(), &term(number)).await.unwrap();
        drop(fence);
        assert!(link.is_symlink());
        let fence = Watermark::open(&path).unwrap();
        drop(fence.admit(&ledger(), &term(number)).unwrap());
    }
}

/// Two processes that come by different names would each have a lock, and after the first claim a file of its
/// own.
#[tokio::test]
async fn a_file_with_a_second_name_is_opened_by_neither() {
    let (scratch, path) = scratch();
    {
        let fence = Watermark::open(&path).unwrap();
        fence.claim(&ledger(), &term(7)).await.unwrap();
    }
    let second = scratch.path().join("second");
    fs::hard_link(&path, &second).unwrap();
    let whole = fs::read(&path).unwrap();
    for path in [&path, &second] {
        assert_eq!(fault(Watermark::open(path)), Fault::Invalid);
        // Whoever only looks keeps nobody out, and sees what there is.
        let seen = Watermark::look(path).unwrap().unwrap();
        assert_eq!(seen.mark(&ledger()).await.unwrap().unwrap().token.number(), 7);
    }
    assert_eq!(fs::read(&path).unwrap(), whole);
    fs::remove_file(&second).unwrap();
    let fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(8)).await.unwrap();
}

#[test]
fn a_link_that_leads_nowhere_is_told_and_left_as_it_is() {
    let (scratch, path) = scratch();
    let link = scratch.path().join("link");
    symlink(&path, &link).unwrap();
    assert_eq!(fault(Watermark::open(&link)), Fault::Invalid);
    assert!(link.is_symlink() && !path.exists());
}

/// `useradd` takes no `passwd.lock` that it has not made.
#[test]
fn nothing_is_left_beside_a_file_of_another_program() {
    let (scratch, path) = scratch();
    fs::write(&path, "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    assert_eq!(fault(Watermark::open(&path)), Fault::Unreadable);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn every_damage_is_told_and_left_as_it_is() {
    let (_scratch, path) = scratch();
    {
        let fence = Watermark::open(&path).unwrap();
        fence.claim(&ledger(), &term(7)).await.unwrap();
    }
    let whole = fs::read(&path).unwrap();
    // What the test damages stands alone in the line.
    assert!(String::from_utf8_lossy(&whole).contains("\t7\t"));
    let mut damages: Vec<Vec<u8>> = (0..whole.len()).map(|bytes| whole[..bytes].to_vec()).collect();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        damages.push(damaged);
    }
    for damaged in damages {
        fs::write(&path, &damaged).unwrap();
        assert_eq!(
            fault(Watermark::open(&path)),
            Fault::Unreadable,
            "{}",
            damaged.escape_ascii()
        );
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, &whole).unwrap();
    // What a crash between writing and renaming leaves behind.
    fs::write(path.with_extension("new"), b"tenure water").unwrap();
    let fence = Watermark::open(&path).unwrap();
    drop(fence.admit(&ledger(), &term(7)).unwrap());
}

#[tokio::test]
async fn a_term_whose_mark_is_not_on_disk_is_not_admitted() {
    let (scratch, path) = scratch();
    let fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(5)).await.unwrap();
    // Permissions would not stop root: a directory in the way of the new file does.
    fs::create_dir(scratch.path().join("marks.new")).unwrap();
    let failed = fence.claim(&ledger(), &term(9)).await.unwrap_err();
    assert!(matches!(failed, FenceError::Store(_)), "{failed}");
    let early = fence.admit(&ledger(), &term(9)).unwrap_err();
    assert!(
        matches!(&early, FenceError::Store(error) if error.fault == Fault::Busy),
        "{early}"
    );
    assert!(matches!(
        fence.admit(&ledger(), &term(5)),
        Err(FenceError::Stale { .. })
    ));
    fs::remove_dir(scratch.path().join("marks.new")).unwrap();
    fence.claim(&ledger(), &term(9)).await.unwrap();
    drop(fence.admit(&ledger(), &term(9)).unwrap());
}

#[test]
fn a_term_whose_mark_a_disk_fails_to_sync_is_not_admitted() {
    let (_scratch, path) = scratch();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fence = Watermark::open(&path).unwrap();
    let failed = on_a_disk_that_fails_to_sync(|| {
        // The thread that writes is begun from this one, and has its disk.
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(fence.claim(&ledger(), &term(9)))
    });
    let failed = failed.unwrap_err();
    assert!(matches!(failed, FenceError::Store(_)), "{failed}");
    let early = fence.admit(&ledger(), &term(9)).unwrap_err();
    assert!(
        matches!(&early, FenceError::Store(error) if error.fault == Fault::Busy),
        "{early}"
    );
    runtime.block_on(fence.claim(&ledger(), &term(9))).unwrap();
    drop(fence.admit(&ledger(), &term(9)).unwrap());
}

/// As after a process that was killed between renaming the file and syncing its directory.
#[test]
fn a_mark_that_may_not_be_on_disk_is_not_believed_after_a_restart() {
    let (_scratch, path) = scratch();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fence = Watermark::open(&path).unwrap();
    runtime.block_on(fence.claim(&ledger(), &term(9))).unwrap();
    drop(fence);
    let opened = on_a_disk_that_fails_to_sync(|| Watermark::open(&path));
    assert_eq!(fault(opened), Fault::Internal);
    let fence = Watermark::open(&path).unwrap();
    drop(fence.admit(&ledger(), &term(9)).unwrap());
}

#[test]
fn a_place_that_cannot_be_used_is_told() {
    let (scratch, _) = scratch();
    assert_eq!(fault(Watermark::open(scratch.path())), Fault::Invalid);
    assert_eq!(fault(Watermark::open("/")), Fault::Invalid);
    let pipe = scratch.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for none in [pipe.as_path(), Path::new("/dev/null")] {
        assert_eq!(fault(Watermark::open(none)), Fault::Invalid);
        assert!(Watermark::look(none).is_err());
    }
    assert_eq!(
        fault(Watermark::open(scratch.path().join("no/marks"))),
        Fault::Unreachable
    );
}

/// Whoever has put it there. A pipe would be waited for until somebody reads it.
#[test]
fn a_lock_that_is_no_file_is_told() {
    for what in ["pipe", "directory", "link"] {
        let (scratch, path) = scratch();
        let lock = scratch.path().join("marks.lock");
        match what {
            "pipe" => assert!(Command::new("mkfifo").arg(&lock).status().unwrap().success()),
            "directory" => fs::create_dir(&lock).unwrap(),
            _ => symlink(scratch.path().join("nowhere"), &lock).unwrap(),
        }
        let (told, opened) = channel();
        std::thread::spawn(move || told.send(fault(Watermark::try_open(&path))));
        assert_eq!(opened.recv_timeout(SOON), Ok(Fault::Invalid), "{what}");
    }
}

/// Killed at any moment, the file is whole and holds every claim that was told.
#[test]
fn a_killed_process_has_kept_what_it_claimed() {
    if let Some(path) = std::env::var_os("TENURE_TEST_CLAIMS_UNTIL_KILLED") {
        claim_for_ever(Path::new(&path));
    }
    let (_scratch, path) = scratch();
    let mut told = 0;
    for round in 0..15 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "file::a_killed_process_has_kept_what_it_claimed",
                "--nocapture",
            ])
            .env("TENURE_TEST_CLAIMS_UNTIL_KILLED", &path);
        let child = Process::spawn(command).unwrap();
        child
            .wait_for_line(&format!("claimed {}", told + 2 + round), SOON)
            .unwrap();
        child.kill_leader();
        child.wait_for_exit(SOON).unwrap();
        let lines = child.lines();
        let mut claimed = lines
            .iter()
            .filter_map(|line| line.text.strip_prefix("claimed ")?.parse::<u64>().ok());
        told = claimed.next_back().expect("it has claimed");
        let fence = Watermark::open(&path).unwrap();
        let stale = fence.admit(&ledger(), &term(told - 1)).unwrap_err();
        assert!(matches!(stale, FenceError::Stale { .. }), "{stale}");
    }
}

fn claim_for_ever(path: &Path) -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let fence = Watermark::open(path).unwrap();
        let mut number = fence
            .mark(&ledger())
            .await
            .unwrap()
            .map_or(1, |mark| mark.token.number());
        loop {
            number += 1;
            fence.claim(&ledger(), &term(number)).await.unwrap();
            println!("claimed {number}");
        }
    })
}
