//! What a process inherits of signals and groups: `tenure` hears what it must, and its command starts with
//! them as they were.

use crate::common::{Sandbox, UNHURRIED, exit_code};
use rustix::process::Signal;
use std::process::Command;
use tenure_testkit::Process;

/// `env <how> tenure run <options> job -- <command>`.
fn run(sandbox: &Sandbox, how: &[&str], options: &[&str], command: &[&str]) -> Process {
    let mut tenure = sandbox.command(&[&["run"], options, &["job", "--"], command].concat());
    tenure.env("TENURE_TTL", UNHURRIED);
    let mut env = Command::new("env");
    for (variable, value) in tenure.get_envs() {
        match value {
            Some(value) => env.env(variable, value),
            None => env.env_remove(variable),
        };
    }
    env.args(how)
        .arg(tenure.get_program())
        .args(tenure.get_args())
        .current_dir(sandbox.dir.path());
    Process::spawn(env).unwrap()
}

/// Whether a line of `/proc/self/status` names this signal. What runs the tests may have others ignored.
fn names(line: &str, signal: Signal) -> bool {
    let (_, mask) = line.split_once('\t').unwrap();
    u64::from_str_radix(mask, 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

/// What the process says of its own signals, in one line.
fn told(process: &Process) -> String {
    assert_eq!(exit_code(process), 0);
    let lines = process.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].text.clone()
}

/// It is ignored below systemd, and nowhere else; the standard library has all its children not ignore it.
#[test]
fn a_broken_pipe_is_ignored_by_the_command_and_hooks_where_it_was_at_the_start() {
    for (how, is_ignored) in [("--default-signal=PIPE", false), ("--ignore-signal=PIPE", true)] {
        let sandbox = Sandbox::new("pipe");
        let hook = ["--on-elected", "grep SigIgn /proc/self/status > hook"];
        let process = run(&sandbox, &[how], &hook, &["grep", "SigIgn", "/proc/self/status"]);
        assert_eq!(names(&told(&process), Signal::PIPE), is_ignored, "{how}");
        assert_eq!(names(&sandbox.line("hook"), Signal::PIPE), is_ignored, "{how}");
    }
}

/// `tenure` hears of its children all the same.
#[test]
fn the_end_of_children_is_ignored_by_the_command_where_it_was_at_the_start() {
    for (how, is_ignored) in [("--default-signal=CHLD", false), ("--ignore-signal=CHLD", true)] {
        let sandbox = Sandbox::new("ignored-child");
        let process = run(&sandbox, &[how], &[], &["grep", "SigIgn", "/proc/self/status"]);
        assert_eq!(names(&told(&process), Signal::CHILD), is_ignored, "{how}");
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// Nobody else would say before the next renewal, in twenty minutes.
#[test]
fn the_end_of_the_command_is_heard_where_its_signal_was_blocked_at_the_start() {
    let sandbox = Sandbox::new("blocked-child");
    let how = ["--block-signal=CHLD"];
    let process = run(
        &sandbox,
        &how,
        &["--ttl", "1h"],
        &["grep", "SigBlk", "/proc/self/status"],
    );
    assert!(names(&told(&process), Signal::CHILD), "it is blocked no more");
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// To block is to hold up, not to ignore. The command does so still, and is killed after the grace.
#[test]
fn a_signal_that_was_blocked_at_the_start_ends_tenure_all_the_same() {
    let sandbox = Sandbox::new("blocked-end");
    let script = "echo yes > started; exec sleep 100";
    let job = ["sh", "-c", script];
    let process = run(&sandbox, &["--block-signal=TERM"], &["--grace", "300ms"], &job);
    sandbox.line("started");
    process.terminate();
    assert_eq!(exit_code(&process), 137);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// As the first process of a PID namespace that began without a session of its own: its group has no number
/// there.
#[test]
fn a_group_outside_of_the_pid_namespace_is_as_good_as_any() {
    let sandbox = Sandbox::new("outer-group");
    let how = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
    ];
    let process = run(&sandbox, &how, &[], &["sh", "-c", "exit 7"]);
    assert_eq!(exit_code(&process), 7, "{:?}", process.lines());
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// Its warden has the command's variables, and not what was said on the command line.
#[test]
fn a_level_of_the_log_that_the_command_line_has_overruled_ends_no_term() {
    let sandbox = Sandbox::new("overruled");
    let mut command = sandbox.command(&["run", "--log", "warn", "job", "--", "printenv", "TENURE_LOG"]);
    command.env("TENURE_LOG", "loud").env("TENURE_TTL", UNHURRIED);
    assert_eq!(told(&Process::spawn(command).unwrap()), "loud");
}
