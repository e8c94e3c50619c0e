//! A machine that gives no thread: whoever builds an election or a manager is told, on a runtime of his own,
//! too.
use crate::harness::Site;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use tenure::{BuildError, Election, LockManager};

/// Set in the process that gets no thread.
const IN_CHILD: &str = "TENURE_TEST_WITHOUT_THREADS";

/// The user and the group `nobody` of Linux: root is refused no thread.
const NOBODY: u32 = 65_534;

/// This test program, at the one test that is named after this.
fn child() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "no_threads::who_gets_no_thread_is_told_and_does_not_panic";
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(IN_CHILD, "1");
    command
}

#[test]
fn who_gets_no_thread_is_told_and_does_not_panic() {
    if std::env::var_os(IN_CHILD).is_some() {
        return without_threads();
    }
    let mut command = child();
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("both were told"), "{ended:?}");
}

fn without_threads() {
    let store = Site::in_memory().store();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let own = std::process::id().to_string();
        let limited = Command::new("prlimit")
            .args(["--nproc=1:1", "--pid", &own])
            .status();
        assert!(limited.unwrap().success());
        let election = Election::builder("job", store.clone()).build();
        assert!(matches!(election, Err(BuildError::Thread(_))), "{election:?}");
        let manager = LockManager::builder(store).build();
        assert!(matches!(manager, Err(BuildError::Thread(_))), "{manager:?}");
        println!("both were told");
    });
}
