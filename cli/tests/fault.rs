//! What the machine refuses to `tenure` while it leads costs the work at most, and never leaves it without its lease.

use crate::common::{SOON, Sandbox, exit_code, parent_of, signal, until_watched};
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

/// As where the command has used up all that the container may have. A panic of `tenure` would give the lease back beside the
/// command: its warden, which kills what a dead `tenure` has left, is held up here.
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
    let mut command =
        sandbox.command(&[&["run", "--ttl", "1h", "--grace", "300ms"], &health[..], &job].concat());
    if geteuid().is_root() {
        chown(sandbox.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let process = Process::spawn(command).unwrap();
    let command = sandbox.pid("pid");
    until_watched(process.pid());
    let mut limit = Command::new("prlimit");
    limit.args(["--nproc=1:1", "--pid", &process.pid().to_string()]);
    if geteuid().is_root() {
        limit.uid(NOBODY).gid(NOBODY);
    }
    assert!(limit.status().unwrap().success());
    let warden = Stopped(parent_of(command));
    signal(warden.0, Signal::STOP);
    assert_eq!(exit_code(&process), 79);
    assert!(!is_alive(command), "it goes on, and its lease was given back");
    let line = "--health-http failed 1 times in a row: Resource temporarily unavailable";
    process.wait_for_line(line, SOON).unwrap();
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}
