//! Work that is hard to find or cannot be killed: it is said, and the lease is not given back while it lives.

use crate::common::{Need, SOON, Sandbox, exit_code, leave_out_or_fail, signal};
use crate::nested::Place;
use rustix::process::{Signal, geteuid};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually, is_alive};

/// The user and the group `nobody` of Linux.
const NOBODY: u32 = 65_534;

/// Everything below the command is found all the same, and it is said once, however many terms there are.
#[test]
fn a_control_group_that_may_not_be_made_is_said_once_and_nothing_survives() {
    let sandbox = Sandbox::new("ungrouped");
    let script = format!(
        "setsid sh -c 'echo $$ >> {}; trap \"\" TERM; while :; do sleep 0.05; done' & sleep 0.3; exit 1",
        sandbox.path("pids")
    );
    let options = [
        "-v",
        "run",
        "--restart",
        "on-failure",
        "--cooldown",
        "100ms",
        "--grace",
        "200ms",
    ];
    let job = ["job", "--", "sh", "-c", &script];
    let mut command = sandbox.command(&[&options[..], &job].concat());
    // Nobody may make one; and the session of anybody else is not theirs to change.
    if geteuid().is_root() {
        chown(sandbox.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let process = Process::spawn(command).unwrap();
    let pids = || -> Vec<u32> {
        sandbox
            .read("pids")
            .lines()
            .map(|pid| pid.parse().unwrap())
            .collect()
    };
    eventually(SOON, "a second term", || pids().len() >= 2);
    process.terminate();
    process.wait_for_exit(SOON).unwrap();
    assert!(pids().into_iter().all(|pid| !is_alive(pid)), "something survived");
    let lines = process.lines();
    let said = lines.iter().filter(|line| line.text.contains("No control group"));
    assert_eq!(said.count(), 1, "{lines:?}");
}

/// It can be made where `tenure` is in a group of threads, but no process may join it.
#[test]
fn a_control_group_that_the_command_may_not_join_is_said() {
    let Some(place) = Place::make("threads") else {
        return;
    };
    let sandbox = Sandbox::new("kept-out");
    let threads = place.0.join("threads");
    fs::create_dir(&threads).unwrap();
    fs::write(threads.join("cgroup.type"), "threaded").unwrap();
    let tenure = sandbox.command(&["-v", "run", "job", "--", "sleep", "300"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo 0 > \"$0\"/cgroup.procs && exec \"$@\""])
        .arg(&threads)
        .arg(tenure.get_program())
        .args(tenure.get_args())
        .env("TENURE_STORE", &sandbox.store);
    let process = Process::spawn(command).unwrap();
    process.wait_for_line("No control group", SOON).unwrap();
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}

/// Ends what nobody else can, also where the test fails.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        if is_alive(self.0) {
            signal(self.0, Signal::KILL);
        }
    }
}

/// A child of `tenure run` that takes no signal of ours, as it has become another user.
///
/// Only root can make a program that changes its user: nothing comes back where it is known that the test is
/// run as another.
fn foreign_child(sandbox: &Sandbox, ttl: &str) -> Option<(Process, Killed)> {
    if !geteuid().is_root() {
        leave_out_or_fail(Need::Root);
        return None;
    }
    let script = as_root(sandbox);
    // So often that a loaded machine does not end it.
    let timing = ["--ttl", ttl, "--renew", "500ms", "--grace", "500ms"];
    let job = ["job", "--", "sh", "-c", &script];
    let mut command = sandbox.command(&[&["run"], &timing[..], &job].concat());
    command.uid(NOBODY).gid(NOBODY);
    let leader = Process::spawn(command).unwrap();
    let child = Killed(sandbox.pid("pid"));
    leader.terminate();
    leader.wait_for_line("cannot be killed", SOON).unwrap();
    assert!(is_alive(child.0), "the child can be killed after all");
    Some((leader, child))
}

/// What becomes root although `nobody` runs it, tells its number in a file, and sleeps. The folder is
/// nobody's then.
fn as_root(sandbox: &Sandbox) -> String {
    chown(sandbox.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let become_root = sandbox.dir.join("become-root");
    // By a program: what this process has open for writing, a child that another test starts has open, too,
    // and then the copy cannot be run.
    let copied = Command::new("cp")
        .arg("/usr/bin/setpriv")
        .arg(&become_root)
        .status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&become_root, fs::Permissions::from_mode(0o4755)).unwrap();
    format!(
        "exec {} --reuid=0 --regid=0 --clear-groups sh -c 'echo $$ > {}; exec sleep 300'",
        become_root.display(),
        sandbox.path("pid")
    )
}

/// It has not ended when it was killed, and is not waited for.
#[test]
fn a_hook_that_cannot_be_killed_holds_nothing_up() {
    let sandbox = Sandbox::new("unkillable-hook");
    if !geteuid().is_root() {
        leave_out_or_fail(Need::Root);
        return;
    }
    let hook = as_root(&sandbox);
    let hooks = ["--on-elected", &hook, "--hook-timeout", "8s"];
    let job = ["job", "--", "sh", "-c", "while [ ! -e pid ]; do sleep 0.05; done"];
    let mut command = sandbox.command(&[&["run"], &hooks[..], &job].concat());
    command.uid(NOBODY).gid(NOBODY);
    let process = Process::spawn(command).unwrap();
    let hook = Killed(sandbox.pid("pid"));
    assert_eq!(exit_code(&process), 0);
    process
        .wait_for_line(
            "--on-elected failed: no answer within 8s, and it cannot be killed",
            SOON,
        )
        .unwrap();
    assert!(is_alive(hook.0), "the hook can be killed after all");
}

/// While it lives, nobody else works: the term goes on, and is given back when the child has ended.
#[test]
fn a_child_that_cannot_be_killed_keeps_the_lease_while_it_lives() {
    let (sandbox, began) = (Sandbox::new("unkillable"), Instant::now());
    let Some((leader, child)) = foreign_child(&sandbox, "60s") else {
        return;
    };
    let second = sandbox.run(&["--ttl", "60s"], "job", "echo mine");
    let remaining = || Duration::from_millis(sandbox.lease("job")["remaining_ms"].as_u64().unwrap_or(0));
    let end_at_most = remaining() + began.elapsed();
    eventually(SOON, "the term is extended by seconds", || {
        let asked_after = began.elapsed();
        asked_after + remaining() > end_at_most + Duration::from_secs(5)
    });
    assert!(is_alive(child.0));
    let lease = sandbox.lease("job");
    assert_eq!(
        (&lease["state"], &lease["terms"]),
        (&json!("held"), &json!(1)),
        "{lease}"
    );
    drop(child);
    exit_code(&leader);
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

/// Whoever will not wait for that: the lease is not given back, and runs out.
#[test]
fn the_lease_of_a_child_that_cannot_be_killed_is_never_given_back() {
    let sandbox = Sandbox::new("unkillable-left");
    let Some((leader, child)) = foreign_child(&sandbox, "8s") else {
        return;
    };
    leader.terminate();
    assert_eq!(exit_code(&leader), 79);
    leader.wait_for_line("is not given back", SOON).unwrap();
    eventually(SOON, "the lease runs out", || {
        sandbox.lease("job")["state"] != "held"
    });
    assert_eq!(sandbox.lease("job")["state"], "expired");
    drop(child);
}
