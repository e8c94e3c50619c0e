//! Signals reach the command, and its whole group is gone before the lease is.

use crate::common::{SOON, Sandbox, exit_code, signal, until_stopped};
use rustix::process::Signal;
use std::time::Duration;
use tenure_testkit::{Process, eventually, is_alive};

/// A script that is ready when it has written to `ready`.
fn ready(sandbox: &Sandbox, before: &str, after: &str) -> String {
    format!("{before}; echo ready >> {}; {after}", sandbox.path("ready"))
}

#[test]
fn a_signal_is_forwarded_and_the_command_decides_how_to_end() {
    for (number, name, code) in [
        (Signal::TERM, "TERM", 21),
        (Signal::INT, "INT", 22),
        (Signal::QUIT, "QUIT", 23),
    ] {
        let sandbox = Sandbox::new("forwarded");
        let trap = format!("trap 'exit {code}' {name}");
        let process = sandbox.run(
            &[],
            "job",
            &ready(&sandbox, &trap, "while :; do sleep 0.05; done"),
        );
        sandbox.line("ready");
        signal(process.pid(), number);
        assert_eq!(exit_code(&process), code, "{name}");
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

#[test]
fn a_command_that_a_forwarded_signal_ends_passes_128_and_its_number() {
    let sandbox = Sandbox::new("ended-by-signal");
    // No child of the shell: dash forgets a SIGINT that comes while it starts one.
    let process = sandbox.run(&[], "job", &ready(&sandbox, ":", "exec sleep 60"));
    sandbox.line("ready");
    process.interrupt();
    assert_eq!(exit_code(&process), 130);
}

/// As a program with job control that leads no session.
#[test]
fn a_command_that_has_left_its_group_hears_a_signal_all_the_same() {
    let leaves = "$SIG{USR1} = sub { exit 21 }; $SIG{INT} = sub { exit 22 }; my $child = fork; \
                  if (!$child) { sleep 300; exit } setpgrp($child, $child); setpgrp(0, $child) or die; \
                  open(READY, '>', 'ready'); print READY \"ready\\n\"; close(READY); sleep 300";
    for (number, code) in [(Signal::USR1, 21), (Signal::INT, 22)] {
        let sandbox = Sandbox::new("left-its-group");
        let process = sandbox.start(&[
            "run", "--grace", "10m", "--ttl", "1h", "job", "--", "perl", "-e", leaves,
        ]);
        sandbox.line("ready");
        signal(process.pid(), number);
        assert_eq!(exit_code(&process), code, "{number:?}");
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// Signals that ask for no end.
const HARMLESS: [(Signal, &str); 4] = [
    (Signal::HUP, "HUP"),
    (Signal::USR1, "USR1"),
    (Signal::USR2, "USR2"),
    (Signal::WINCH, "WINCH"),
];

#[test]
fn a_hang_up_and_what_users_mean_by_signals_is_forwarded_and_ends_nothing() {
    let sandbox = Sandbox::new("hang-up");
    let traps = HARMLESS.map(|(_, name)| format!("trap 'echo reloaded >> {name}' {name}"));
    let process = sandbox.run(
        &["--grace", "100ms"],
        "job",
        &ready(&sandbox, &traps.join("; "), "while :; do sleep 0.05; done"),
    );
    sandbox.line("ready");
    for (number, name) in HARMLESS {
        signal(process.pid(), number);
        assert_eq!(sandbox.line(name), "reloaded");
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(process.status(), None, "a reload ended the command");
}

/// As where it runs by itself: it has ended of its own accord, and not for `tenure`.
#[test]
fn a_command_that_does_not_handle_a_hang_up_is_ended_by_it() {
    for (number, name) in &HARMLESS[..3] {
        let sandbox = Sandbox::new("unhandled");
        let process = sandbox.run(&[], "job", &ready(&sandbox, ":", "exec sleep 300"));
        sandbox.line("ready");
        signal(process.pid(), *number);
        assert_eq!(exit_code(&process), 128 + number.as_raw(), "{name}");
    }
}

#[test]
fn while_it_waits_a_hang_up_ends_it_and_no_signal_that_means_nothing_does() {
    let sandbox = Sandbox::new("hang-up-waiting");
    let _holder = sandbox.run(&["--ttl", "10m"], "job", "sleep 300");
    sandbox.until_held("job");
    let standby = sandbox.run(&[], "job", "true");
    standby.wait_for_line("waiting", SOON).unwrap();
    for (number, name) in &HARMLESS[1..] {
        signal(standby.pid(), *number);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(standby.status(), None, "{name}");
    }
    signal(standby.pid(), Signal::HUP);
    assert_eq!(exit_code(&standby), 129);
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let sandbox = Sandbox::new("stubborn");
    let process = sandbox.run(
        &["--grace", "300ms"],
        "job",
        &ready(&sandbox, "trap '' TERM", "while :; do sleep 0.05; done"),
    );
    sandbox.line("ready");
    process.terminate();
    assert_eq!(exit_code(&process), 137);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

#[test]
fn a_stopped_command_can_still_be_ended() {
    for (number, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT")] {
        let sandbox = Sandbox::new("stopped");
        let script = format!("trap 'exit 5' {name}; echo $$ > pid; while :; do sleep 0.05; done");
        let process = sandbox.run(&["--grace", "4s"], "job", &script);
        let command = sandbox.pid("pid");
        signal(command, Signal::STOP);
        until_stopped(command);
        signal(process.pid(), number);
        assert_eq!(exit_code(&process), 5, "{name}");
    }
}

/// Who takes over must find nobody of the group before it.
#[test]
fn what_the_command_left_behind_is_gone_before_the_release() {
    let sandbox = Sandbox::new("left-behind");
    // The grandchild ignores SIGTERM, and its parent is gone.
    let script = format!(
        "(trap '' TERM HUP; while :; do sleep 0.05; done) & echo $! > {}",
        sandbox.path("grandchild")
    );
    let first = sandbox.run(&["--grace", "1s"], "job", &script);
    let grandchild = sandbox.pid("grandchild");
    let look = format!("kill -0 {grandchild} 2>/dev/null && echo alive || echo gone");
    let second = sandbox.run(&[], "job", &look);
    assert_eq!(exit_code(&second), 0);
    assert_eq!(exit_code(&first), 0, "the code is the command's");
    assert!(
        lines(&second).iter().any(|line| line == "gone"),
        "{:?}",
        lines(&second)
    );
    assert!(!is_alive(grandchild));
}

#[test]
fn what_the_command_left_behind_may_end_by_itself() {
    let sandbox = Sandbox::new("left-gently");
    let script = format!(
        "(trap 'echo gently > {}; exit' TERM; echo ready > {}; while :; do sleep 0.02; done) &
         while [ ! -s {} ]; do sleep 0.02; done",
        sandbox.path("how"),
        sandbox.path("ready"),
        sandbox.path("ready")
    );
    let process = sandbox.run(&["--grace", "5s"], "job", &script);
    assert_eq!(exit_code(&process), 0);
    assert_eq!(sandbox.line("how"), "gently");
}

#[test]
fn signals_ignored_at_the_start_stay_ignored() {
    let sandbox = Sandbox::new("nohup");
    let inner = ready(&sandbox, ":", "sleep 60");
    let script = format!(
        "trap '' HUP; exec {} run job -- sh -c '{inner}'",
        env!("CARGO_BIN_EXE_tenure")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env("TENURE_STORE", &sandbox.store);
    let process = Process::spawn(command).unwrap();
    sandbox.line("ready");
    signal(process.pid(), Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(process.status(), None, "a hang-up ended what nohup protects");
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}

/// The command has ended by itself, and what it left behind is being ended, when the signal comes.
#[test]
fn a_signal_that_comes_while_leftovers_are_ended_lets_no_other_term_begin() {
    let sandbox = Sandbox::new("late-leftovers");
    let script = format!(
        "echo run >> {0}
         (trap 'echo ending >> {1}' TERM; echo ready > {2}; while [ ! -e {3} ]; do sleep 0.05; done) &
         while [ ! -s {2} ]; do sleep 0.02; done; exit 3",
        sandbox.path("runs"),
        sandbox.path("ending"),
        sandbox.path("ready"),
        sandbox.path("go"),
    );
    let options = [&["--restart", "always", "--cooldown", "0s"], &LONG_GRACE[..]].concat();
    let process = sandbox.run(&options, "job", &script);
    terminate_as_it_ends(&sandbox, &process);
    assert_eq!(exit_code(&process), 3, "the code is the command's");
    assert_eq!(sandbox.read("runs"), "run\n");
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// A grace in which what is ending ends when it is let, however slow the machine.
const LONG_GRACE: [&str; 6] = ["--ttl", "10m", "--renew", "500ms", "--grace", "4m"];

/// Terminates a process whose work writes a line to `ending` for each SIGTERM, once it is ending; and lets
/// the work end when it has heard of that.
fn terminate_as_it_ends(sandbox: &Sandbox, process: &Process) {
    let heard = || sandbox.read("ending").lines().count();
    eventually(SOON, "the work is ending", || heard() == 1);
    process.terminate();
    eventually(SOON, "the signal is passed on", || heard() == 2);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
}

/// The holder was asked to step down, or is not well, and its command is ending when the signal comes.
#[test]
fn a_signal_that_comes_while_a_term_is_ended_lets_no_other_begin() {
    for (what, again) in [
        ("asked", &["--keep"][..]),
        ("unwell", &["--restart", "always", "--cooldown", "0s"]),
    ] {
        let sandbox = Sandbox::new("late-signal");
        let script = format!(
            "trap 'echo ending >> {}' TERM; echo run >> {}; while [ ! -e {} ]; do sleep 0.05; done",
            sandbox.path("ending"),
            sandbox.path("runs"),
            sandbox.path("go")
        );
        let health = ["--health-cmd", "test ! -e sick", "--health-every", "50ms"];
        let process = sandbox.run(&[&health[..], &LONG_GRACE, again].concat(), "job", &script);
        sandbox.line("runs");
        let code = if what == "asked" {
            let told = sandbox.tenure(&["step-down", "job", "--wait", "0s"]);
            assert!(told.stderr.contains("was asked"), "{told:?}");
            143
        } else {
            std::fs::write(sandbox.dir.join("sick"), "").unwrap();
            79
        };
        terminate_as_it_ends(&sandbox, &process);
        assert_eq!(exit_code(&process), code, "{what}");
        assert_eq!(sandbox.read("runs"), "run\n", "{what}");
        assert_eq!(sandbox.lease("job")["state"], "vacant", "{what}");
    }
}

fn lines(process: &Process) -> Vec<String> {
    process.lines().into_iter().map(|line| line.text).collect()
}
