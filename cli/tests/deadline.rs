//! Whatever happens to the supervisor or to the store: the command is gone before another may lead.

#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, its functions too"
)]

mod common;

use common::{SOON, Sandbox, exit_code, signal};
use rusqlite::Connection;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tenure_testkit::{eventually, is_alive};

const STUBBORN: &str = "trap '' TERM; while :; do sleep 0.05; done";

/// A command that writes its number to `pid`, and then does `what`.
fn numbered(sandbox: &Sandbox, what: &str) -> String {
    format!("echo $$ > {}; {what}", sandbox.path("pid"))
}

/// Holds the write lock: nobody can renew, everybody can read.
fn lock(sandbox: &Sandbox) -> Connection {
    let file = sandbox.dir.join("leases.db");
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_before_the_deadline() {
    let sandbox = Sandbox::new("deadline");
    let process = sandbox.run(
        &["--ttl", "4s", "--grace", "1s"],
        "job",
        &numbered(&sandbox, STUBBORN),
    );
    let command = sandbox.pid("pid");
    let locked = lock(&sandbox);
    // Read before it is asked: the lease lasts at least as long as this says.
    let asked = Instant::now();
    let remaining = sandbox.lease("job")["remaining_ms"].as_u64().unwrap();
    let expires = asked + Duration::from_millis(remaining);
    assert!(is_alive(command), "killed without need");
    while is_alive(command) {
        assert!(Instant::now() < expires, "the command outlived the lease");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(locked);
    assert_eq!(exit_code(&process), 79);
    process.wait_for_line("leadership is doubtful", SOON).unwrap();
    process.wait_for_line("has ended, and sh with it", SOON).unwrap();
}

#[test]
fn sigterm_comes_at_the_doubt_and_leaves_the_grace() {
    let sandbox = Sandbox::new("doubt");
    let script = format!(
        "trap 'sleep 0.3; echo cleaned > {}; exit 0' TERM; while :; do sleep 0.05; done",
        sandbox.path("cleaned")
    );
    let process = sandbox.run(
        &["--ttl", "6s", "--grace", "2s"],
        "job",
        &numbered(&sandbox, &script),
    );
    sandbox.pid("pid");
    let _locked = lock(&sandbox);
    assert_eq!(exit_code(&process), 79, "its own code would look like success");
    assert_eq!(sandbox.read("cleaned"), "cleaned\n");
}

#[test]
fn an_outage_that_ends_in_time_is_not_noticed_by_the_command() {
    let sandbox = Sandbox::new("outage");
    let script = "trap 'exit 9' TERM; i=0; while [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; exit 4";
    let process = sandbox.run(&["--ttl", "6s"], "job", &numbered(&sandbox, script));
    sandbox.pid("pid");
    let locked = lock(&sandbox);
    std::thread::sleep(Duration::from_millis(2500));
    drop(locked);
    assert_eq!(exit_code(&process), 4);
}

#[test]
fn killing_the_supervisor_kills_the_command_and_another_takes_over() {
    let sandbox = Sandbox::new("killed");
    let first = sandbox.run(&["--ttl", "2s"], "job", &numbered(&sandbox, "sleep 300"));
    let command = sandbox.pid("pid");
    let second = sandbox.run(&["--ttl", "2s"], "job", "echo mine $TENURE_TOKEN");
    second.wait_for_line("waiting", SOON).unwrap();
    first.kill_leader();
    eventually(SOON, "the command dies with its supervisor", || {
        !is_alive(command)
    });
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
}

/// While it is frozen nothing but the fence protects: its command runs on. Awake, the first thing it does is
/// to end it.
#[test]
fn a_supervisor_that_was_frozen_past_its_lease_kills_its_command_when_it_wakes() {
    let sandbox = Sandbox::new("frozen");
    let first = sandbox.run(&["--ttl", "1s"], "job", &numbered(&sandbox, STUBBORN));
    let command = sandbox.pid("pid");
    signal(first.pid(), Signal::STOP);
    let second = sandbox.run(&["--ttl", "1s"], "job", "echo mine; sleep 300");
    second.wait_for_line("mine", SOON).unwrap();
    assert!(is_alive(command), "a frozen supervisor cannot have killed it");
    let term = sandbox.lease("job")["token"].clone();
    signal(first.pid(), Signal::CONT);
    eventually(SOON, "the command is killed", || !is_alive(command));
    assert_eq!(exit_code(&first), 79);
    assert_eq!(
        sandbox.lease("job")["token"],
        term,
        "the late one disturbed its successor"
    );
    assert_eq!(sandbox.lease("job")["state"], "held");
}

#[test]
fn what_ended_in_a_frozen_supervisor_after_its_lease_is_no_success() {
    let sandbox = Sandbox::new("too-late");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", sandbox.path("go"));
    let first = sandbox.run(&["--ttl", "1s"], "job", &numbered(&sandbox, &script));
    let command = sandbox.pid("pid");
    signal(first.pid(), Signal::STOP);
    let second = sandbox.run(&["--ttl", "1s"], "job", "true");
    assert_eq!(exit_code(&second), 0);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    eventually(SOON, "the command ends", || !is_alive(command));
    signal(first.pid(), Signal::CONT);
    assert_eq!(exit_code(&first), 79);
}

/// A supervisor whose messages nobody reads still kills in time: that is not done by the thread that speaks.
#[test]
fn a_supervisor_that_cannot_speak_still_kills_in_time() {
    let sandbox = Sandbox::new("mute");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let inner = numbered(&sandbox, STUBBORN);
    // A pipe that nobody reads, and that is full.
    let script = format!(
        "mkfifo {0}; exec 3<>{0}; head -c 65536 /dev/zero >&3; exec {tenure} run --ttl 4s job -- sh -c \"{1}\" 2>&3",
        sandbox.path("pipe"),
        inner.replace('$', "\\$")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env("TENURE_STORE", &sandbox.store);
    let _process = tenure_testkit::Process::spawn(command).unwrap();
    let command = sandbox.pid("pid");
    let _locked = lock(&sandbox);
    let asked = Instant::now();
    let remaining = sandbox.lease("job")["remaining_ms"].as_u64().unwrap();
    while is_alive(command) {
        let late = asked.elapsed() >= Duration::from_millis(remaining);
        assert!(!late, "the command outlived the lease");
        std::thread::sleep(Duration::from_millis(1));
    }
}
