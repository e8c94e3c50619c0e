//! A standard error that nobody reads, as a pipe to a process that hangs, or a terminal after Ctrl-S.

use crate::common::{SOON, Sandbox, exit_code};
use rustix::fs::{FileType, Mode, mknodat};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;
use std::time::Duration;
use tenure_testkit::{Process, eventually, is_alive};

/// `tenure` with these arguments, whose standard error takes nothing in for as long as the file lives that is
/// answered.
fn unread(sandbox: &Sandbox, arguments: &[&str]) -> (Process, File) {
    let path = sandbox.dir.join("unread");
    mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(0o4000) // O_NONBLOCK
        .open(&path)
        .unwrap();
    for chunk in [4096, 1] {
        let full = loop {
            if let Err(error) = pipe.write(&vec![b'x'; chunk]) {
                break error.kind();
            }
        };
        assert_eq!(full, ErrorKind::WouldBlock);
    }
    let program = sandbox.command(arguments);
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 2> unread"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(sandbox.dir.path());
    for (variable, value) in program.get_envs() {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    (Process::spawn(command).unwrap(), pipe)
}

/// Both the main thread, by its messages, and the election's, by its log, would hang in a write.
#[test]
fn a_standby_whose_messages_nobody_reads_works_when_it_wins() {
    for options in [&["run"][..], &["-vv", "run"]] {
        let sandbox = Sandbox::new("unread-standby");
        let first = sandbox.run(&["--ttl", "30s"], "job", "sleep 300");
        sandbox.until_held("job");
        let script = "echo $$ > pid; exec sleep 300";
        let job = ["--ttl", "30s", "job", "--", "sh", "-c", script];
        let (second, _pipe) = unread(&sandbox, &[options, &job].concat());
        // It has met the other, and tells of it.
        std::thread::sleep(Duration::from_secs(1));
        first.terminate();
        exit_code(&first);
        let command = sandbox.pid("pid");
        second.terminate();
        assert_eq!(exit_code(&second), 143);
        assert!(!is_alive(command));
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

#[test]
fn a_holder_whose_messages_nobody_reads_ends_its_work_and_hands_over() {
    for options in [&["run"][..], &["-vv", "run"]] {
        let sandbox = Sandbox::new("unread-holder");
        let script = "echo $$ > pid; trap '' TERM; while :; do sleep 0.05; done";
        let timing = ["--ttl", "1h", "--renew", "1s", "--grace", "500ms"];
        let job = ["job", "--", "sh", "-c", script];
        let (process, _pipe) = unread(&sandbox, &[options, &timing[..], &job].concat());
        let command = sandbox.pid("pid");
        let told = sandbox.tenure(&["step-down", "job", "--wait", "0s"]);
        assert!(told.stderr.contains("was asked"), "{told:?}");
        assert_eq!(exit_code(&process), 79);
        assert!(!is_alive(command));
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// It would be blocked by what it says, and be taken for one that has failed.
#[test]
fn a_health_command_whose_errors_nobody_reads_fails_nobody() {
    let sandbox = Sandbox::new("unread-health");
    let health = [
        "--health-cmd",
        "echo well >&2; echo asked >> asked",
        "--health-every",
        "200ms",
        "--health-timeout",
        "10s",
        "--health-retries",
        "2",
    ];
    let job = ["job", "--", "sh", "-c", "echo $$ > pid; exec sleep 300"];
    let (process, _pipe) = unread(&sandbox, &[&["run"], &health[..], &job].concat());
    let command = sandbox.pid("pid");
    eventually(SOON, "it was asked often, or is ended", || {
        process.status().is_some() || sandbox.read("asked").lines().count() >= 5
    });
    assert!(is_alive(command), "ended though it was well");
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}
