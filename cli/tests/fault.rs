//! What the machine refuses to `tenure` while it leads costs the work at most, and never leaves it without
//! its lease.

use crate::common::{SOON, Sandbox, ended, exit_code, parent_of, signal, until_watched};
use rustix::process::{Signal, geteuid};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use tenure_testkit::{Process, is_alive};

/// The user and the group `nobody` of Linux: root is refused no thread.
const NOBODY: u32 = 65_534;

/// A page at a host with a name that answers that all is well.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _length = stream.read(&mut [0; 1024]).unwrap();
            write!(stream, "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
        }
    });
    url
}

/// Has what was stopped go on, also where the test fails.
struct Stopped(u32);

impl Drop for Stopped {
    fn drop(&mut self) {
        if is_alive(self.0) {
            signal(self.0, Signal::CONT);
        }
    }
}

/// Starts it as somebody whom the machine may refuse something.
fn start(sandbox: &Sandbox, arguments: &[&str]) -> Process {
    let mut command = sandbox.command(arguments);
    as_nobody(sandbox, &mut command);
    Process::spawn(command).unwrap()
}

fn as_nobody(sandbox: &Sandbox, command: &mut Command) {
    if geteuid().is_root() {
        chown(sandbox.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// From here on it gets no thread beside those that it has.
fn leave_no_thread(process: &Process) {
    let mut limit = Command::new("prlimit");
    limit.args(["--nproc=1:1", "--pid", &process.pid().to_string()]);
    if geteuid().is_root() {
        limit.uid(NOBODY).gid(NOBODY);
    }
    assert!(limit.status().unwrap().success());
}

/// As where the command has used up all that the container may have. A panic of `tenure` would give the lease
/// back beside the command: its warden, which kills what a dead `tenure` has left, is held up here.
#[test]
fn a_look_up_that_gets_no_thread_is_a_page_that_fails() {
    let sandbox = Sandbox::new("no-threads");
    let health = [
        "--health-http",
        &page(),
        "--health-every",
        "1s",
        "--health-retries",
        "1",
    ];
    let script = format!("echo $$ > {}; exec sleep 300", sandbox.path("pid"));
    let job = ["--no-history", "job", "--", "sh", "-c", &script];
    let timing = ["run", "--ttl", "1h", "--grace", "300ms"];
    let process = start(&sandbox, &[&timing[..], &health, &job].concat());
    let command = sandbox.pid("pid");
    until_watched(process.pid());
    // First: it is gone soon after the first page that fails.
    let warden = Stopped(parent_of(command));
    signal(warden.0, Signal::STOP);
    leave_no_thread(&process);
    assert_eq!(exit_code(&process), 79);
    assert!(!is_alive(command), "it goes on, and its lease was given back");
    let line = "--health-http failed 1 times in a row: Resource temporarily unavailable";
    process.wait_for_line(line, SOON).unwrap();
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// What a thread was to write is written without one, as long as there is none.
#[test]
fn who_gets_no_thread_for_its_messages_says_so() {
    let sandbox = Sandbox::new("no-thread-at-all");
    let tenure = sandbox.command(&["run", "job", "--", "true"]);
    let mut command = limited("--nproc=1:1", &tenure);
    as_nobody(&sandbox, &mut command);
    let refused = ended(command);
    assert_eq!(refused.code, 70, "{refused:?}");
    assert!(refused.stderr.contains("cannot write aside"), "{refused:?}");
}

/// Whoever has its own runtime is told, and does not panic: a runtime that is dropped on another panics.
#[test]
fn a_store_for_which_there_is_no_thread_is_told_as_that() {
    for url in [
        #[cfg(feature = "mongodb")]
        "mongodb://127.0.0.1:1",
        #[cfg(feature = "redis")]
        "redis://127.0.0.1:1",
        #[cfg(feature = "postgres")]
        "postgres://me@127.0.0.1:1/bank",
        #[cfg(feature = "mysql")]
        "mysql://me@127.0.0.1:1/bank",
        #[cfg(feature = "etcd")]
        "etcd://127.0.0.1:1",
        #[cfg(feature = "nats")]
        "nats://127.0.0.1:1",
    ] {
        let sandbox = Sandbox::at("no-thread-for-a-store", url);
        let mut command = limited("--nproc=1:1", &sandbox.command(&["status"]));
        as_nobody(&sandbox, &mut command);
        let refused = ended(command);
        assert_eq!(refused.code, 70, "{url}: {refused:?}");
        assert!(
            refused.stderr.contains("store could not start its thread")
                && refused.stderr.lines().count() == 1,
            "{url}: {refused:?}"
        );
    }
}

/// As few as a runtime needs, and fewer.
#[test]
fn who_gets_no_files_to_start_with_says_so_in_one_line() {
    let sandbox = Sandbox::new("no-files");
    for files in 5..=9 {
        let tenure = sandbox.command(&["run", "job", "--", "true"]);
        let refused = ended(limited(&format!("--nofile={files}:{files}"), &tenure));
        assert_eq!(refused.code, 70, "{files} files: {refused:?}");
        assert!(
            refused.stderr.contains("Too many open files") && refused.stderr.lines().count() == 1,
            "{files} files: {refused:?}"
        );
    }
}

/// The same command, under a limit.
fn limited(limit: &str, tenure: &Command) -> Command {
    let mut command = Command::new("prlimit");
    command
        .arg(limit)
        .arg(tenure.get_program())
        .args(tenure.get_args());
    for (variable, value) in tenure.get_envs() {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    if let Some(folder) = tenure.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// Its place in the queue is a term of its own, beside which a new one is put on the disk by a thread.
#[test]
fn who_waits_in_order_and_gets_no_thread_has_its_turn_all_the_same() {
    let sandbox = Sandbox::new("no-thread-to-sync");
    let go = sandbox.path("go");
    let script = format!("echo mine; while [ ! -e {go} ]; do sleep 0.05; done");
    let first = start(&sandbox, &["lock", "--fair", "job", "--", "sh", "-c", &script]);
    first.wait_for_line("mine", SOON).unwrap();
    let second = start(&sandbox, &["lock", "--fair", "job", "--", "sleep", "300"]);
    second.wait_for_line("waiting", SOON).unwrap();
    leave_no_thread(&second);
    std::fs::write(&go, "").unwrap();
    assert_eq!(exit_code(&first), 0);
    // It has won, can start nothing, and gives the lock back.
    assert_eq!(exit_code(&second), 70);
    let lease = sandbox.lease("job");
    assert_eq!((&lease["terms"], &lease["state"]), (&2.into(), &"vacant".into()));
}
