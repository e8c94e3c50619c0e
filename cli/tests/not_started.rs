//! A command that is not started though the lease was won: the term ends as others do, and it never runs.

use crate::common::{SOON, Sandbox, exit_code};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tenure_testkit::{Process, eventually};

/// Has whoever opens the file wait, as one on a dead network file system does, until the answer is dropped.
#[expect(
    unsafe_code,
    reason = "the kernel's leases of files are in the C library alone"
)]
fn hang(path: &Path) -> File {
    // SAFETY: to ignore runs no code of this process; the signal says that somebody waits.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    let file = File::open(path).unwrap();
    // SAFETY: it changes nothing but the open file. A child that another test starts may have it open for
    // writing yet.
    let lease = || unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) } == 0;
    eventually(SOON, "a lease of the file", lease);
    file
}

#[test]
fn a_command_that_cannot_be_started_in_its_term_ends_it_and_never_runs() {
    let sandbox = Sandbox::new("hanging-start");
    let hanging = hanging_program(&sandbox);
    // The start is given up a fiftieth of the ttl before the deadline, and by then the lease is to be given
    // back.
    let timing = ["--ttl", "20s", "--grace", "5s"];
    let job = ["job", "--", "./program"];
    let process = sandbox.start(&[&["run"], &timing[..], &job].concat());
    assert_eq!(exit_code(&process), 79);
    process
        .wait_for_line("could not be started in time", SOON)
        .unwrap();
    assert_eq!(sandbox.lease("job")["state"], "vacant");
    drop(hanging);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!sandbox.dir.join("ran").exists(), "started after its term");
}

/// The program of the command, which hangs until the answer is dropped.
fn hanging_program(sandbox: &Sandbox) -> File {
    hang(&sandbox.script("program", "#!/bin/sh\ntouch ran\n"))
}

/// It may have begun before that was known: then it gets the signal as any other, and time to end.
#[test]
fn a_signal_that_comes_while_the_command_is_being_started_is_not_lost_where_it_begins() {
    let sandbox = Sandbox::new("signal-in-start");
    let script = "#!/bin/sh\ntrap 'exit 5' TERM; while :; do sleep 0.05; done\n";
    let hanging = hang(&sandbox.script("program", script));
    let process = sandbox.start(&["run", "--on-elected", "touch elected", "job", "--", "./program"]);
    eventually(SOON, "it was elected", || sandbox.dir.join("elected").exists());
    process.terminate();
    drop(hanging);
    let code = exit_code(&process);
    assert!([5, 143].contains(&code), "{code}");
}

/// It is found by `PATH`, on a network file system for one, and is no part of the work.
#[test]
fn a_shell_on_a_file_system_that_is_away_holds_nothing_up() {
    let sandbox = Sandbox::new("hanging-shell");
    std::fs::create_dir(sandbox.dir.join("bin")).unwrap();
    let _hanging = hang(&sandbox.script("bin/sh", "#!/bin/sh\n"));
    let health = ["--health-cmd", "touch asked", "--health-every", "100ms"];
    let hook = ["--on-elected", "touch elected"];
    let script = "until [ -e asked ] && [ -e elected ]; do sleep 0.05; done; exit 4";
    let job = ["job", "--", "/bin/sh", "-c", script];
    let mut command = sandbox.command(&[&["run"], &health[..], &hook, &job].concat());
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", sandbox.path("bin")));
    let process = Process::spawn(command).unwrap();
    assert_eq!(exit_code(&process), 4);
}

#[test]
fn a_signal_that_comes_while_the_command_is_being_started_lets_it_not_begin() {
    let sandbox = Sandbox::new("signal-at-start");
    let hanging = hanging_program(&sandbox);
    let process = sandbox.start(&["run", "--on-elected", "touch elected", "job", "--", "./program"]);
    eventually(SOON, "it was elected", || sandbox.dir.join("elected").exists());
    process.terminate();
    // What was started by then would have run by the time that all is over.
    assert_eq!(exit_code(&process), 143);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
    drop(hanging);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!sandbox.dir.join("ran").exists(), "started after the signal");
    let told = sandbox.tenure(&["history", "job"]);
    assert!(told.stdout.contains("was not started"), "{told:?}");
}

/// A start in the midst of a deployment: whoever ended for good would be missed as a standby ever after.
#[test]
fn a_program_that_is_away_as_its_term_begins_is_run_again_where_restarts_are_asked_for() {
    let again = ["--keep", "--restart", "always", "--cooldown", "100ms"];
    for (options, goes_on) in [(&again[..], true), (&["--keep"][..], false)] {
        let sandbox = Sandbox::new("away-for-a-while");
        let program = sandbox.script("program", "#!/bin/sh\necho ran > ran\nexec sleep 300\n");
        let holder = sandbox.run(&[], "job", "sleep 300");
        sandbox.until_held("job");
        let job = ["job", "--", "./program"];
        let process = sandbox.start(&[&["run"], options, &job].concat());
        process.wait_for_line("waiting", SOON).unwrap();
        let away = sandbox.dir.join("away");
        std::fs::rename(&program, &away).unwrap();
        holder.terminate();
        process.wait_for_line("was not found", SOON).unwrap();
        std::fs::rename(&away, &program).unwrap();
        if goes_on {
            assert_eq!(sandbox.line("ran"), "ran");
            process.terminate();
        }
        assert_eq!(exit_code(&process), if goes_on { 143 } else { 127 });
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}

/// How many files this process may open from now on.
fn limit_files(process: &Process, files: &str) {
    let mut limit = Command::new("prlimit");
    limit.args([&format!("--nofile={files}:"), "--pid", &process.pid().to_string()]);
    assert!(limit.status().unwrap().success());
}

/// Nothing of the command is wrong, and another host may have what this one lacks.
#[test]
fn a_host_that_lacks_open_files_as_a_term_begins_has_another_turn_with_keep() {
    for (options, goes_on) in [
        (&["--keep", "--cooldown", "100ms"][..], true),
        (&["--once"][..], false),
    ] {
        let sandbox = Sandbox::new("no-files");
        // Whoever cannot look whether it was given back tries when it would have ended.
        let ttl = ["--ttl", "10s"];
        let holder = sandbox.run(&ttl, "job", "sleep 300");
        sandbox.until_held("job");
        let job = [
            "--no-history",
            "job",
            "--",
            "sh",
            "-c",
            "echo ran > ran; exec sleep 300",
        ];
        let process = sandbox.start(&[&["run"], options, &ttl, &job].concat());
        process.wait_for_line("waiting", SOON).unwrap();
        limit_files(&process, "3");
        holder.terminate();
        let line = process.wait_for_line("cannot be guarded: Too many open files", SOON);
        line.unwrap();
        limit_files(&process, "1000");
        if goes_on {
            assert_eq!(sandbox.line("ran"), "ran");
            process.terminate();
        }
        assert_eq!(exit_code(&process), if goes_on { 143 } else { 70 });
        assert_eq!(sandbox.lease("job")["state"], "vacant");
    }
}
