//! Whatever happens to the supervisor or to the store: the command is gone before another may lead.

use crate::common::lifetime::{StoodStill, played_again};
use crate::common::{SOON, Sandbox, children_of, exit_code, parent_of, signal, until_stopped, until_watched};
use rusqlite::Connection;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually, is_alive};

pub(super) const STUBBORN: &str = "trap '' TERM; while :; do sleep 0.05; done";

/// A term that is killed 400 ms before its end: of a shorter one it would be 100 ms, for which a loaded
/// machine may stand still.
pub(super) const ROOMY: [&str; 4] = ["--ttl", "20s", "--grace", "5s"];

/// A command that writes its number to `pid`, and then does `what`.
pub(super) fn numbered(sandbox: &Sandbox, what: &str) -> String {
    format!("echo $$ > {}; {what}", sandbox.path("pid"))
}

/// Holds the write lock: nobody can renew, everybody can read.
pub(super) fn lock(sandbox: &Sandbox) -> Connection {
    let file = sandbox.dir.join("leases.db");
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_before_the_deadline() {
    played_again(|| {
        let sandbox = Sandbox::new("deadline");
        let process = sandbox.run(&ROOMY, "job", &numbered(&sandbox, STUBBORN));
        let command = sandbox.pid("pid");
        let locked = lock(&sandbox);
        assert!(is_alive(command), "killed without need");
        sandbox.dies_within_its_lease(command, "job")?;
        drop(locked);
        assert_eq!(exit_code(&process), 79);
        process.wait_for_line("leadership is doubtful", SOON).unwrap();
        process.wait_for_line("has ended, and sh with it", SOON).unwrap();
        Ok(())
    });
}

#[test]
fn sigterm_comes_at_the_doubt_and_leaves_the_grace() {
    let sandbox = Sandbox::new("doubt");
    let script = format!(
        "trap 'sleep 0.3; echo cleaned > {}; exit 0' TERM; while :; do sleep 0.05; done",
        sandbox.path("cleaned")
    );
    let process = sandbox.run(
        &["--ttl", "10s", "--grace", "5s"],
        "job",
        &numbered(&sandbox, &script),
    );
    sandbox.pid("pid");
    let _locked = lock(&sandbox);
    assert_eq!(exit_code(&process), 79, "its own code would look like success");
    assert_eq!(sandbox.read("cleaned"), "cleaned\n");
}

/// Tries of an outage that is to end shortly before the doubt: a loaded machine may renew too late for it.
const TRIES_MAX: usize = 4;

/// The renewal comes after the last look that is due anyway before the kill, and before the doubt: nobody has
/// asked the command to end, and its warden is told in time.
#[test]
fn a_renewal_shortly_before_the_doubt_saves_the_command() {
    let options = ["--ttl", "8s", "--renew", "3200ms", "--grace", "200ms"];
    let mut tries = Vec::new();
    while tries.len() < TRIES_MAX {
        let sandbox = Sandbox::new("just-in-time");
        let script = format!(
            "trap 'echo asked > {}' TERM; while :; do sleep 0.05; done",
            sandbox.path("asked")
        );
        let process = sandbox.run(&options, "job", &numbered(&sandbox, &script));
        let command = sandbox.pid("pid");
        let locked = lock(&sandbox);
        // None of one that was lost.
        let remaining = || {
            let lease = sandbox.lease("job");
            lease["remaining_ms"]
                .as_u64()
                .filter(|_| lease["state"] == "held")
        };
        // Looks are due each 1600 ms: the last at 6400 ms, and the kill at 7840 ms.
        eventually(SOON, "the end is near", || {
            remaining().is_none_or(|left| left < 1400)
        });
        drop(locked);
        eventually(SOON, "it is renewed, or lost", || {
            remaining().is_none_or(|left| left > 2000)
        });
        // Longer than the old deadline, and well within the new one.
        std::thread::sleep(Duration::from_millis(2000));
        if remaining().is_some() && sandbox.read("asked").is_empty() && is_alive(command) {
            return;
        }
        let said = process.lines().into_iter().map(|line| line.text);
        tries.push(said.collect::<Vec<_>>());
    }
    panic!("the command was asked to end, or killed, each time: {tries:?}");
}

#[test]
fn an_outage_that_ends_in_time_is_not_noticed_by_the_command() {
    let sandbox = Sandbox::new("outage");
    let script = "trap 'exit 9' TERM; i=0; while [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; exit 4";
    // A renewal is due in the outage, and others for ten seconds after it.
    let process = sandbox.run(
        &["--ttl", "20s", "--renew", "2s"],
        "job",
        &numbered(&sandbox, script),
    );
    sandbox.pid("pid");
    let locked = lock(&sandbox);
    std::thread::sleep(Duration::from_millis(2500));
    drop(locked);
    assert_eq!(exit_code(&process), 4);
}

/// Once, however many tries fail, as these come every few moments.
#[test]
fn the_beginning_and_the_end_of_an_outage_are_said_once() {
    let sandbox = Sandbox::new("outage-said");
    let process = sandbox.run(
        &["--ttl", "60s", "--renew", "500ms"],
        "job",
        "echo works; sleep 300",
    );
    process.wait_for_line("works", SOON).unwrap();
    let locked = lock(&sandbox);
    process.wait_for_line("renewal failed", SOON).unwrap();
    std::thread::sleep(Duration::from_secs(8));
    drop(locked);
    process.wait_for_line("renewed again", SOON).unwrap();
    for said in ["renewal failed", "renewed again"] {
        let lines = process.lines();
        let times = lines.iter().filter(|line| line.text.contains(said)).count();
        assert_eq!(times, 1, "{lines:?}");
    }
}

/// With a ttl of an hour: who takes over has not waited for it.
#[test]
fn killing_the_supervisor_kills_all_of_the_work_and_gives_the_lease_back_at_once() {
    let sandbox = Sandbox::new("killed");
    // One in the group, one in a session of its own, one stopped: all orphans, and deaf to SIGTERM.
    let script = format!(
        "trap '' TERM HUP
         (while :; do sleep 0.05; done) & echo $! > {}
         setsid sh -c 'trap \"\" TERM HUP; echo $$ > {}; while :; do sleep 0.05; done' &
         (sh -c 'echo $$ > {}; kill -STOP $$; sleep 300' &)
         while :; do sleep 0.05; done",
        sandbox.path("member"),
        sandbox.path("escapee"),
        sandbox.path("stopped"),
    );
    let first = sandbox.run(&["--ttl", "1h"], "job", &numbered(&sandbox, &script));
    let pids = ["pid", "member", "escapee", "stopped"].map(|name| sandbox.pid(name));
    let look = format!(
        "for pid in {}; do kill -0 $pid 2>/dev/null && echo alive $pid; done; echo mine",
        pids.map(|pid| pid.to_string()).join(" ")
    );
    let second = sandbox.run(&["--ttl", "1h"], "job", &look);
    second.wait_for_line("waiting", SOON).unwrap();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "killed without need");
    first.kill_leader();
    second.wait_for_line("mine", SOON).unwrap();
    assert_eq!(exit_code(&second), 0);
    let told: Vec<String> = second.lines().into_iter().map(|line| line.text).collect();
    assert!(
        !told.iter().any(|line| line.starts_with("alive")),
        "two at once: {told:?}"
    );
}

/// The store's file is away when the supervisor is killed: the warden tries again.
#[test]
fn a_store_that_is_away_when_the_supervisor_dies_gets_the_lease_back_afterwards() {
    let sandbox = Sandbox::new("away");
    let process = sandbox.run(&["--ttl", "1h"], "job", &numbered(&sandbox, "sleep 300"));
    let pid = sandbox.pid("pid");
    let away = sandbox.move_store_away();
    process.kill_leader();
    eventually(SOON, "the work is killed", || !is_alive(pid));
    // Enough for a first try to fail.
    std::thread::sleep(Duration::from_millis(300));
    away.bring_back();
    eventually(SOON, "the lease is given back", || {
        sandbox.lease("job")["state"] == "vacant"
    });
}

/// The number of the only child of a process.
fn child_of(pid: u32) -> u32 {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let read = || std::fs::read_to_string(&children).ok()?.trim().parse().ok();
    eventually(SOON, "the warden", read)
}

#[test]
fn without_its_warden_the_work_ends_and_the_lease_is_given_back() {
    for death in [Signal::KILL, Signal::STOP] {
        let sandbox = Sandbox::new("warden");
        let script = format!(
            "setsid sh -c 'echo $$ > {}; while :; do sleep 0.05; done' & while :; do sleep 0.05; done",
            sandbox.path("escapee")
        );
        let timing = ["--ttl", "1h", "--grace", "500ms"];
        let first = sandbox.run(&timing, "job", &numbered(&sandbox, &script));
        let pids = ["pid", "escapee"].map(|name| sandbox.pid(name));
        until_watched(first.pid());
        signal(child_of(first.pid()), death);
        if death == Signal::STOP {
            // Nothing is amiss until the work has to end.
            signal(first.pid(), Signal::TERM);
        }
        let code = exit_code(&first);
        assert!(
            matches!((death, code), (Signal::KILL, 79) | (_, 79 | 137)),
            "{code}"
        );
        assert!(pids.iter().all(|pid| !is_alive(*pid)), "something was left");
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// As when both die at once: nobody of ours is left to kill it, and the kernel does.
#[test]
fn the_command_dies_with_its_warden_also_where_tenure_does_nothing() {
    let sandbox = Sandbox::new("both-gone");
    let process = sandbox.run(&["--ttl", "1h"], "job", &numbered(&sandbox, "exec sleep 100"));
    let work = sandbox.pid("pid");
    until_watched(process.pid());
    signal(process.pid(), Signal::STOP);
    until_stopped(process.pid());
    signal(parent_of(work), Signal::KILL);
    eventually(SOON, "the kernel kills it", || !is_alive(work));
}

/// By the kernel, out of memory, or by whoever ends all of a service at once; that says nothing of the user's
/// limits.
#[test]
fn a_warden_that_is_killed_as_it_starts_is_one_that_has_died() {
    for death in [Signal::KILL, Signal::TERM, Signal::KILL] {
        let sandbox = Sandbox::new("early");
        let process = sandbox.run(&["--ttl", "1h"], "job", "sleep 300");
        let began = Instant::now();
        // At once: it starts within milliseconds.
        while children_of(process.pid()) == 0 {
            assert!(began.elapsed() < SOON, "no warden");
        }
        signal(child_of(process.pid()), death);
        if death == Signal::TERM {
            // It may have taken signals in already, and this one with them.
            signal(process.pid(), Signal::TERM);
        }
        let code = exit_code(&process);
        assert!(
            matches!((death, code), (_, 79) | (Signal::TERM, 137 | 143)),
            "{code}"
        );
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// Hooks and what they have started are not the work: `tenure` kills that past the warden, dead or frozen,
/// and not them.
#[test]
fn a_hook_that_runs_when_the_warden_dies_goes_on() {
    for death in [Signal::KILL, Signal::STOP] {
        let sandbox = Sandbox::new("hook-spared");
        let (go, told) = (sandbox.path("go"), sandbox.path("told"));
        let hook = format!(
            "sh -c 'echo $$ > {}; while [ ! -e {go} ]; do sleep 0.05; done'; echo told > {told}",
            sandbox.path("hook")
        );
        let options = ["--ttl", "6s", "--hook-timeout", "10m", "--on-elected", &hook];
        let process = sandbox.run(&options, "job", &numbered(&sandbox, STUBBORN));
        let (work, below_hook) = (sandbox.pid("pid"), sandbox.pid("hook"));
        until_watched(process.pid());
        signal(parent_of(work), death);
        if death == Signal::STOP {
            // The frozen one does not end the work at the deadline.
            let _locked = lock(&sandbox);
            eventually(SOON, "the work is killed", || !is_alive(work));
        }
        // Whoever waits for nothing but the work gives the lease back while the hook runs on.
        process.wait_for_line("has ended, and sh with it", SOON).unwrap();
        assert!(!is_alive(work), "something was left");
        assert!(is_alive(below_hook), "a part of the hook was killed");
        std::fs::write(&go, "").unwrap();
        assert_eq!(exit_code(&process), 79);
        assert_eq!(sandbox.read("told"), "told\n");
        let lines: Vec<String> = process.lines().into_iter().map(|line| line.text).collect();
        assert!(
            !lines.iter().any(|line| line.contains("--on-elected")),
            "{lines:?}"
        );
    }
}

#[test]
fn what_left_the_group_ends_with_the_command() {
    let sandbox = Sandbox::new("escaped");
    let script = format!(
        "setsid nohup sh -c '(sh -c \"echo \\$\\$ > {}; while :; do sleep 0.05; done\" &)' >/dev/null 2>&1 &
         while [ ! -s {} ]; do sleep 0.02; done; exit 5",
        sandbox.path("daemon"),
        sandbox.path("daemon")
    );
    let process = sandbox.run(&["--grace", "500ms"], "job", &script);
    assert_eq!(exit_code(&process), 5);
    assert!(!is_alive(sandbox.pid("daemon")), "a daemon outlived the lease");
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// The warden goes by the deadline that it was told last; and a supervisor that stays frozen past it would
/// hold files and connections against the others.
#[test]
fn a_frozen_supervisor_outlives_its_deadline_no_more_than_its_command_does() {
    played_again(|| {
        let sandbox = Sandbox::new("frozen");
        let first = sandbox.run(&ROOMY, "job", &numbered(&sandbox, STUBBORN));
        let command = sandbox.pid("pid");
        signal(first.pid(), Signal::STOP);
        sandbox.dies_within_its_lease(command, "job")?;
        let second = sandbox.run(&["--ttl", "30s"], "job", "echo mine; sleep 300");
        second.wait_for_line("mine", SOON).unwrap();
        assert!(was_killed(&first), "it was ended, frozen as it was");
        assert_eq!(
            sandbox.lease("job")["state"],
            "held",
            "its successor was disturbed"
        );
        Ok(())
    });
}

fn was_killed(process: &Process) -> bool {
    process.wait_for_exit(SOON).unwrap().signal() == Some(Signal::KILL.as_raw())
}

#[test]
fn what_ended_in_a_frozen_supervisor_is_given_back_by_nobody_before_the_deadline() {
    let sandbox = Sandbox::new("too-late");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", sandbox.path("go"));
    // As long as a loaded machine may need to start the command.
    let first = sandbox.run(&["--ttl", "6s"], "job", &numbered(&sandbox, &script));
    let command = sandbox.pid("pid");
    signal(first.pid(), Signal::STOP);
    until_stopped(first.pid());
    let began = Instant::now();
    let remaining = sandbox.lease("job")["remaining_ms"].as_u64();
    let remaining = Duration::from_millis(remaining.expect("it is held"));
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    eventually(SOON, "the command ends", || !is_alive(command));
    let second = sandbox.run(&["--ttl", "6s"], "job", "true");
    assert_eq!(exit_code(&second), 0);
    let took = began.elapsed();
    assert!(took >= remaining, "given back {:?} before", remaining - took);
    assert!(was_killed(&first));
}

/// A supervisor whose messages nobody reads still kills in time: that is not done by the thread that speaks.
#[test]
fn a_supervisor_that_cannot_speak_still_kills_in_time() {
    played_again(|| mute_and_locked_out(&Sandbox::new("mute")));
}

fn mute_and_locked_out(sandbox: &Sandbox) -> Result<(), StoodStill> {
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let inner = numbered(sandbox, STUBBORN);
    // A pipe that nobody reads, and that is full.
    let script = format!(
        "mkfifo {0}; exec 3<>{0}; head -c 65536 /dev/zero >&3; exec {tenure} run --ttl 20s job -- sh -c \"{1}\" 2>&3",
        sandbox.path("pipe"),
        inner.replace('$', "\\$")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env("TENURE_STORE", &sandbox.store);
    let _process = Process::spawn(command).unwrap();
    let command = sandbox.pid("pid");
    let _locked = lock(sandbox);
    sandbox.dies_within_its_lease(command, "job")
}
