//! At a terminal, below a shell with job control: whoever asks for the terminal has it, and nobody stays
//! stopped for it.

use crate::common::shell::{CTRL_C, CTRL_Z, Shell, UNTIL_FOREGROUND, scripts};
use crate::common::{SOON, Sandbox, UNHURRIED, exit_code, signal, until_stopped};
use rustix::process::Signal;
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_testkit::{Process, eventually};

/// A term that a machine that stands still for seconds does not end, renewed often, so that its supervisor
/// shows soon that it does not.
const TIMING: &str = "--ttl 60s --renew 500ms";

/// Lines of [`TICKING`] for three seconds: the group is woken again for one, after which nobody stops or
/// wakes anybody.
const TICKS: usize = 60;

/// A supervisor that stands still makes none of them.
const RENEWALS: usize = 3;

/// Writes a line every 50 ms until there is a file `go`, for two minutes at most.
const TICKING: &str =
    "n=0; while [ ! -e go ] && [ $n -lt 2400 ]; do n=$((n + 1)); echo tick $n; sleep 0.05; done";

/// Waits until the command has worked on for a while, and its supervisor after that.
fn until_it_has_ticked_on(sandbox: &Sandbox) {
    let ticks = || sandbox.read("ticks").lines().count();
    let before = ticks();
    // Each tick starts a process, which a loaded machine takes its time for.
    eventually(SOON * 3, "ticks", || ticks() >= before + TICKS);
    for _ in 0..RENEWALS {
        let before = Instant::now();
        eventually(SOON, "a renewal", || {
            // Taken before the store is asked: what was renewed less long ago than this was renewed since.
            let since = before.elapsed().as_millis();
            let renewed_ago = sandbox.lease("job")["renewed_ago_ms"].as_u64();
            renewed_ago.is_some_and(|ago| u128::from(ago) < since)
        });
    }
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
    let mut command = Command::new("sh");
    command.args(["-c", &typed]).env("TENURE_STORE", &sandbox.store);
    let _terminal = Process::spawn(command).unwrap();
    assert_eq!(sandbox.line("got"), "got one");
    // The shell after it has its terminal back.
    assert_eq!(sandbox.line("then"), "then two");
    eventually(SOON, "the lease is given back", || {
        sandbox.lease("job")["state"] == "vacant"
    });
}

/// Whether it was started by a shell at its prompt, or by a script that waits for it.
#[test]
fn a_command_alone_at_its_terminal_is_in_the_foreground_and_is_not_suspended() {
    let itself = format!("$tenure run {TIMING} job -- ./work");
    for how in [itself.as_str(), "./outer"] {
        let sandbox = Sandbox::new("alone");
        scripts(
            &sandbox,
            &[
                (
                    "work",
                    &format!("{UNTIL_FOREGROUND}\necho yes > foreground\n({TICKING}) >> ticks"),
                ),
                ("outer", &format!("$tenure run {TIMING} job -- ./work\nexit $?")),
            ],
        );
        let mut shell = Shell::start(&sandbox);
        shell.enter(&format!("{how}; echo $? > code"));
        assert_eq!(sandbox.line("foreground"), "yes", "{how}");
        shell.press(CTRL_Z);
        shell.until_shows("^Z");
        until_it_has_ticked_on(&sandbox);
        shell.enter("touch ended");
        std::fs::write(sandbox.dir.join("go"), "").unwrap();
        assert_eq!(sandbox.line("code"), "0", "{how}");
        // The shell, which nobody has suspended anything of, reads what was typed meanwhile.
        eventually(SOON, "the shell goes on", || sandbox.dir.join("ended").exists());
    }
}

/// It sets the terminal up at its start, for which the kernel stops its group, with `tenure`, if another is
/// in the foreground.
#[test]
fn a_pager_in_a_pipeline_has_the_terminal_while_the_command_works() {
    let sandbox = Sandbox::new("pager");
    scripts(
        &sandbox,
        &[
            ("work", TICKING),
            (
                "pager",
                "stty -echo < /dev/tty; read key < /dev/tty; echo $key > key; stty echo < /dev/tty; cat >> ticks",
            ),
        ],
    );
    let mut shell = Shell::start(&sandbox);
    shell.enter(&format!(
        "$tenure run {TIMING} job -- ./work | ./pager; echo ${{PIPESTATUS[*]}} > codes"
    ));
    shell.enter("q");
    assert_eq!(sandbox.line("key"), "q");
    until_it_has_ticked_on(&sandbox);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(sandbox.line("codes"), "0 0");
}

/// What asks for a password writes more than a pipe holds then: its reader, which wants a key, must not stay
/// stopped.
#[test]
fn the_terminal_goes_to_the_command_that_asks_and_back_to_the_pager_that_does() {
    let sandbox = Sandbox::new("password");
    scripts(
        &sandbox,
        &[
            ("work", "read password < /dev/tty; echo $password; seq 100000"),
            (
                "pager",
                "read first; echo $first > first; read key < /dev/tty; echo $key > key; cat > rest",
            ),
        ],
    );
    let mut shell = Shell::start(&sandbox);
    shell.enter(&format!(
        "$tenure run {TIMING} job -- ./work | ./pager; echo ${{PIPESTATUS[*]}} > codes"
    ));
    shell.enter("secret");
    assert_eq!(sandbox.line("first"), "secret");
    shell.enter("q");
    assert_eq!(sandbox.line("key"), "q");
    assert_eq!(sandbox.line("codes"), "0 0");
    assert_eq!(sandbox.read("rest").lines().count(), 100_000);
}

#[test]
fn a_command_with_another_input_is_lent_the_terminal_it_asks_for() {
    let sandbox = Sandbox::new("other-input");
    scripts(
        &sandbox,
        &[("work", "read line; read key < /dev/tty; echo $line $key > got")],
    );
    let mut shell = Shell::start(&sandbox);
    shell.enter(&format!(
        "echo one | $tenure run {TIMING} job -- ./work; echo ${{PIPESTATUS[*]}} > codes"
    ));
    shell.enter("two");
    assert_eq!(sandbox.line("got"), "one two");
    assert_eq!(sandbox.line("codes"), "0 0");
}

#[test]
fn ctrl_c_reaches_all_of_a_pipeline_and_the_command_once() {
    let sandbox = Sandbox::new("ctrl-c");
    let script = |file: &str, code: u8| {
        format!("trap 'echo interrupted >> {file}' INT; echo > {file}; {TICKING}; exit {code}")
    };
    scripts(
        &sandbox,
        &[
            ("work", &script("work-told", 4)),
            ("other", &script("other-told", 5)),
        ],
    );
    let mut shell = Shell::start(&sandbox);
    let options = "--ttl 60s --grace 30s";
    shell.enter(&format!(
        "$tenure run {options} job -- ./work | ./other > /dev/null; echo ${{PIPESTATUS[*]}} > codes"
    ));
    for file in ["work-told", "other-told"] {
        eventually(SOON, file, || sandbox.dir.join(file).exists());
    }
    shell.press(CTRL_C);
    for file in ["work-told", "other-told"] {
        eventually(SOON, file, || sandbox.read(file).contains("interrupted"));
    }
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(sandbox.line("codes"), "4 5");
    assert_eq!(sandbox.read("work-told"), "\ninterrupted\n");
}

/// As a pager does, the other one first tidies up and then stops itself, when it was woken long since.
#[test]
fn ctrl_z_suspends_nobody_of_a_pipeline() {
    let sandbox = Sandbox::new("ctrl-z");
    scripts(
        &sandbox,
        &[
            ("work", TICKING),
            (
                "other",
                "trap 'echo yes > tidied; kill -STOP $$ $!' TSTP; exec 3<&0; cat <&3 >> ticks & wait; wait",
            ),
        ],
    );
    let mut shell = Shell::start(&sandbox);
    shell.enter(&format!(
        "$tenure run {TIMING} job -- ./work | ./other; echo ${{PIPESTATUS[*]}} > codes"
    ));
    sandbox.line("ticks");
    // It may be woken before it has even seen that it is to stop.
    eventually(SOON, "it stops", || {
        shell.press(CTRL_Z);
        std::thread::sleep(Duration::from_millis(200));
        sandbox.dir.join("tidied").exists()
    });
    until_it_has_ticked_on(&sandbox);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(sandbox.line("codes"), "0 0");
}

/// The shell would wait for `tenure`, which is not stopped, and the others could not go on.
#[test]
fn ctrl_z_suspends_nobody_of_a_pipeline_whose_lease_lingers() {
    let sandbox = Sandbox::new("ctrl-z-lingering");
    let other = "trap 'echo yes > tidied; kill -STOP $$' TSTP; until [ -e go ]; do sleep 0.05; done; echo yes > went-on";
    scripts(&sandbox, &[("other", other)]);
    let mut shell = Shell::start(&sandbox);
    shell.enter(&format!(
        "$tenure run {TIMING} --linger 5m job -- sh -c 'exit 3' | ./other; echo ${{PIPESTATUS[*]}} > codes"
    ));
    shell.until_shows("the lease is kept");
    eventually(SOON, "it stops", || {
        shell.press(CTRL_Z);
        std::thread::sleep(Duration::from_millis(200));
        sandbox.dir.join("tidied").exists()
    });
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    sandbox.line("went-on");
    let asked = sandbox.tenure(&["step-down", "job", "--wait", "30s"]);
    assert_eq!(asked.code, 0, "{asked:?}");
    assert_eq!(sandbox.line("codes"), "3 0");
}

/// A shell that is killed takes it back from none of its jobs, and a script below another reads what is typed
/// next.
#[test]
fn a_terminal_that_was_given_to_what_is_gone_goes_back_to_who_ran_tenure() {
    let sandbox = Sandbox::new("job-gone");
    scripts(
        &sandbox,
        &[
            ("work", "set -m\nsh -c 'kill -9 $PPID'"),
            (
                "outer",
                "$tenure run job -- ./work\necho $? > code\nread line < /dev/tty\necho $line > got",
            ),
        ],
    );
    let mut shell = Shell::start(&sandbox);
    shell.enter("./outer");
    assert_eq!(sandbox.line("code"), "137", "{}", sandbox.read("screen"));
    shell.enter("typed");
    assert_eq!(sandbox.line("got"), "typed");
}

/// What the supervisor hears late of does not end it: another has woken it, or it has the terminal and has
/// passed it on since.
#[test]
fn a_command_that_went_on_before_its_supervisor_heard_of_its_stop_works_on() {
    let sandbox = Sandbox::new("went-on");
    let work = format!(
        "echo $$ > work-pid; until [ -e ask ]; do sleep 0.05; done; kill -TTIN $$; echo yes > went-on; {TICKING}"
    );
    scripts(&sandbox, &[("work", &work)]);
    let mut shell = Shell::start(&sandbox);
    shell.enter(&format!(
        "$tenure run {TIMING} job -- ./work > ticks & echo $! > tenure-pid"
    ));
    let (tenure, work) = (sandbox.pid("tenure-pid"), sandbox.pid("work-pid"));
    signal(tenure, Signal::STOP);
    until_stopped(tenure);
    std::fs::write(sandbox.dir.join("ask"), "").unwrap();
    until_stopped(work);
    signal(work, Signal::CONT);
    sandbox.line("went-on");
    signal(tenure, Signal::CONT);
    until_it_has_ticked_on(&sandbox);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    shell.enter("wait $!; echo $? > code");
    assert_eq!(sandbox.line("code"), "0");
}

/// It would keep the lease for ever, and do nothing.
#[test]
fn a_command_that_asks_for_the_terminal_in_the_background_is_ended_and_it_is_said() {
    for (command, told) in [
        ("cat", "it read from the terminal in the background"),
        ("stty -echo", "it set up the terminal"),
    ] {
        let sandbox = Sandbox::new("background");
        let mut shell = Shell::start(&sandbox);
        shell.enter(&format!(
            "$tenure run --ttl {UNHURRIED} --grace 5s job -- {command} 2> said &"
        ));
        shell.enter("wait $!; echo $? > code");
        assert_eq!(sandbox.line("code"), "79", "{command}");
        let said = sandbox.read("said");
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in ["lease \"job\"", told, "run tenure in the foreground, or"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(sandbox.lease("job")["state"], "vacant", "{command}");
    }
}

/// It holds nothing.
#[test]
fn ctrl_z_suspends_who_waits_until_it_is_woken() {
    let sandbox = Sandbox::new("standby");
    let holder = sandbox.run(&[], "job", TICKING);
    sandbox.until_held("job");
    let mut shell = Shell::start(&sandbox);
    shell.enter("$tenure run job -- sh -c 'echo yes > led'");
    shell.until_shows("waiting; held by");
    shell.press(CTRL_Z);
    shell.until_shows("Stopped");
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&holder), 0);
    assert_eq!(sandbox.lease("job")["state"], "vacant");
    shell.enter("fg");
    assert_eq!(sandbox.line("led"), "yes");
}

/// The supervisor blocks those with which a terminal stops, and what it starts would inherit that.
#[test]
fn no_signal_is_blocked_in_the_command_or_a_hook() {
    let sandbox = Sandbox::new("blocked");
    // Some shells unblock everything by themselves.
    sandbox.script("sh", "#!/usr/bin/env bash\neval \"$2\"\n");
    let path = format!(
        "{}:{}",
        sandbox.dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    let hook = "grep SigBlk /proc/self/status > hook";
    let mut command = sandbox.command(&["run", "--on-elected", hook, "job", "--"]);
    command
        .args(["grep", "SigBlk", "/proc/self/status"])
        .env("PATH", path);
    let process = Process::spawn(command).unwrap();
    assert_eq!(exit_code(&process), 0);
    let command = process
        .lines()
        .into_iter()
        .find(|line| line.text.starts_with("SigBlk"));
    assert_eq!(command.unwrap().text, "SigBlk:\t0000000000000000");
    assert_eq!(sandbox.line("hook"), "SigBlk:\t0000000000000000");
}
