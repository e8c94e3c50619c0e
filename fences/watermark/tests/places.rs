//! Where the file may be, and what becomes of who has it open when it is another's by then.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tenure_core::{
    Bump, Certainty, Claimed, Fault, Fence, FenceError, FencingToken, LeaseName, ResourceName, StoreError,
    Term,
};
use tenure_testkit::served_by_a_program;
use tenure_watermark::{FileSystemTrust, Watermark};

const ROLE: &str = "TENURE_TEST_ROLE";
const MARKS: &str = "TENURE_TEST_MARKS";

const NOBODY: u32 = 65_534;

fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

fn term(number: u64) -> Term {
    let lease = LeaseName::new("nightly").unwrap();
    Term::new(lease, FencingToken::new(number).unwrap())
}

fn run(work: impl Future) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work);
}

fn told<T: std::fmt::Debug>(opened: Result<T, FenceError>) -> StoreError {
    match opened {
        Err(FenceError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// This test program, which plays `role` with the marks at this path, behind these arguments of a command.
fn plays(before: &[&str], role: &str, marks: &Path) -> Command {
    let mut command = Command::new(before[0]);
    command
        .args(&before[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "places::as_a_child", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(MARKS, marks);
    command
}

/// Plays it, and demands that it says that all is as promised.
fn played(mut command: Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("all is as promised"),
        "{said}{}\nwhere it has no namespaces: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// In namespaces of its own, where it is root.
fn played_after(set_up: &str, role: &str, marks: &Path) {
    let set_up = format!("{set_up} && exec \"$0\" \"$@\"");
    let namespaces = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        &set_up,
    ];
    played(plays(&namespaces, role, marks));
}

#[test]
fn as_a_child() {
    let (Ok(role), Some(marks)) = (std::env::var(ROLE), std::env::var_os(MARKS)) else {
        return;
    };
    let marks = Path::new(&marks);
    match role.as_str() {
        "at a mounted file" => {
            let refused = told(Watermark::open(marks));
            assert_eq!(refused.fault, Fault::Invalid, "{refused}");
            for part in ["is itself a mount", "mount the directory"] {
                assert!(refused.message.contains(part), "{refused}");
            }
        }
        "in a mounted directory" => {
            let refused = told(Watermark::try_open(marks));
            assert_eq!(refused.fault, Fault::Busy, "{refused}");
        }
        "served by a program" => {
            served_by_a_program(marks.parent().unwrap(), marks.file_name().unwrap());
            for refused in [told(Watermark::open(marks)), told(Watermark::try_open(marks))] {
                assert_eq!(
                    (refused.fault, refused.certainty),
                    (Fault::Unsupported, Certainty::NotApplied)
                );
                assert!(refused.message.contains("filesystem=trusted"), "{refused}");
            }
            // This one opens no files.
            let trusted = told(Watermark::open_on(marks, FileSystemTrust::Trusted));
            assert_ne!(trusted.fault, Fault::Unsupported, "{trusted}");
        }
        "without threads" => run(claims_without_threads(marks)),
        other => panic!("{other}"),
    }
    println!("all is as promised");
}

/// As containers do it: `docker -v FILE:FILE`, Kubernetes' subPath. Beside another path another lock would
/// be, and the next claim by one of them would be a file of its own.
#[tokio::test]
async fn a_mounted_file_of_marks_is_refused_and_one_in_a_mounted_directory_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let [own, other] = ["own", "other"].map(|part| {
        let directory = scratch.path().join(part);
        fs::create_dir(&directory).unwrap();
        directory.join("marks")
    });
    let fence = Watermark::open(&own).unwrap();
    fence.claim(&ledger(), &term(7)).await.unwrap();
    fs::write(&other, "").unwrap();
    let bind = |from: &Path, to: &Path| format!("mount --bind '{}' '{}'", from.display(), to.display());
    played_after(&bind(&own, &other), "at a mounted file", &other);
    let directories = bind(own.parent().unwrap(), other.parent().unwrap());
    played_after(&directories, "in a mounted directory", &other);
}

/// A network file system is refused in the same place, trusted or not: which of them are is told by their
/// numbers.
#[test]
fn a_watermark_on_a_file_system_that_a_program_serves_is_refused_unless_it_is_trusted() {
    let scratch = tempfile::tempdir().unwrap();
    played_after("true", "served by a program", &scratch.path().join("marks"));
}

/// The folder of a watermark that was claimed by term 7, put back as it was while a process has it open.
async fn folder_put_back() -> (tempfile::TempDir, PathBuf, Watermark) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("marks");
    let fence = Watermark::open(&path).unwrap();
    fence.claim(&ledger(), &term(7)).await.unwrap();
    fence.check(&ledger(), &term(7)).await.unwrap();
    let kept = fs::read(&path).unwrap();
    fs::rename(&folder, scratch.path().join("before")).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(&path, kept).unwrap();
    (scratch, path, fence)
}

#[tokio::test]
async fn a_watermark_whose_folder_was_replaced_passes_no_term_by_what_it_remembers() {
    let (_scratch, path, before) = folder_put_back().await;
    // Nobody has opened the other yet; but somebody may at any moment.
    let checked = before.check(&ledger(), &term(7)).await;
    assert!(
        matches!(checked, Err(FenceError::Unclaimed { .. })),
        "{checked:?}"
    );
    let claimed = told(before.claim(&ledger(), &term(7)).await);
    assert_eq!(claimed.fault, Fault::Busy, "{claimed}");

    let after = Watermark::open(&path).unwrap();
    assert_eq!(after.claim(&ledger(), &term(7)).await, Ok(Claimed::Already));
    after.claim(&ledger(), &term(9)).await.unwrap();
    let checked = before.check(&ledger(), &term(7)).await;
    let Err(FenceError::Stale { mark, .. }) = checked else {
        panic!("{checked:?}")
    };
    assert_eq!(mark, term(9).token);
    after.check(&ledger(), &term(9)).await.unwrap();
}

/// The operator is told that no term from before is admitted.
#[tokio::test]
async fn a_mark_that_is_bumped_in_a_folder_put_back_ends_the_term_of_who_has_the_old_one() {
    let (_scratch, path, before) = folder_put_back().await;
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let bumped = Watermark::open(&path).unwrap().bump(&bump).await.unwrap();
    let checked = before.check(&ledger(), &term(7)).await;
    assert!(
        matches!(&checked, Err(FenceError::Stale { mark, .. }) if *mark == bumped.token),
        "{checked:?}"
    );
}

/// As where a container has used up all that it may have.
#[test]
fn a_claim_that_gets_no_thread_is_written_all_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = plays(&["env"], "without threads", &scratch.path().join("marks"));
    // Root may have as many as it likes.
    if chown(scratch.path(), Some(NOBODY), Some(NOBODY)).is_ok() {
        command.uid(NOBODY).gid(NOBODY);
    }
    played(command);
}

async fn claims_without_threads(marks: &Path) {
    let fence = Watermark::open(marks).unwrap();
    fence.claim(&ledger(), &term(7)).await.unwrap();
    let own = std::process::id().to_string();
    let limited = Command::new("prlimit")
        .args(["--nproc=1:1", "--pid", &own])
        .status();
    assert!(limited.unwrap().success());
    let thread = std::thread::Builder::new().spawn(|| ());
    assert!(thread.is_err(), "there are threads to be had");
    fence.claim(&ledger(), &term(8)).await.unwrap();
    drop(fence);
    let seen = Watermark::look(marks).unwrap().unwrap();
    let mark = seen.mark(&ledger()).await.unwrap().unwrap();
    assert_eq!(mark.token, term(8).token);
}
