//! Signals reach the command, and its whole group is gone before the lease is.

use crate::common::{SOON, Sandbox, exit_code, signal};
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

#[test]
fn a_hang_up_is_forwarded_and_ends_nothing() {
    let sandbox = Sandbox::new("hang-up");
    let trap = format!("trap 'echo reloaded >> {}' HUP", sandbox.path("reloaded"));
    let process = sandbox.run(
        &["--grace", "100ms"],
        "job",
        &ready(&sandbox, &trap, "while :; do sleep 0.05; done"),
    );
    sandbox.line("ready");
    signal(process.pid(), Signal::HUP);
    assert_eq!(sandbox.line("reloaded"), "reloaded");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(process.status(), None, "a reload ended the command");
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
    let sandbox = Sandbox::new("stopped");
    let script = format!(
        "trap 'exit 5' TERM; echo $$ > {}; while :; do sleep 0.05; done",
        sandbox.path("pid")
    );
    let process = sandbox.run(&["--grace", "4s"], "job", &script);
    signal(sandbox.pid("pid"), Signal::STOP);
    process.terminate();
    assert_eq!(exit_code(&process), 5);
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

/// A group in the background of a terminal would be stopped for reading from it.
#[test]
fn the_command_can_read_from_the_terminal() {
    let sandbox = Sandbox::new("terminal");
    let inner = format!(
        "{} run job -- sh -c 'read line; echo got $line > {}'; read next; echo then $next > {}",
        env!("CARGO_BIN_EXE_tenure"),
        sandbox.path("got"),
        sandbox.path("then")
    );
    let script = sandbox.script("inner", &format!("#!/bin/sh\n{inner}\n"));
    let typed = format!(
        "(sleep 0.2; echo one; sleep 0.2; echo two; sleep 30) | script -qec {} /dev/null",
        script.display()
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &typed]).env("TENURE_STORE", &sandbox.store);
    let _terminal = Process::spawn(command).unwrap();
    assert_eq!(sandbox.line("got"), "got one");
    // The shell after it has its terminal back.
    assert_eq!(sandbox.line("then"), "then two");
    eventually(SOON, "the lease is given back", || {
        sandbox.lease("job")["state"] == "vacant"
    });
}

fn lines(process: &Process) -> Vec<String> {
    process.lines().into_iter().map(|line| line.text).collect()
}
