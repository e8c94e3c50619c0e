//! A line that was written for flock(1) does the same with `tenure lock`, or is refused in one line that says
//! what to do.

use crate::common::{SOON, Sandbox, UNHURRIED, ended, exit_code};
use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};
use tenure_testkit::Process;

/// Holds the lock of the sandbox until it is terminated.
fn holder(sandbox: &Sandbox) -> Process {
    let holder = sandbox.start(&["lock", "a", "-c", "echo held; exec sleep 300"]);
    holder.wait_for_line("held", SOON).unwrap();
    holder
}

#[test]
fn the_options_of_flock_end_as_they_do_with_flock() {
    let sandbox = Sandbox::new("flock-options");
    let file = sandbox.path("lock-file");
    let lines = [
        &["-n"][..],
        &["--nb"],
        &["--nonblock", "-E", "9"],
        &["-w", "0"],
        &["-w", "0.2"],
        &["-w", ".2"],
        &["--timeout", "0.2", "-E", "0"],
        &["--wait=0.2", "--conflict-exit-code", "7"],
        &["-x", "-n"],
        &["-e", "-n"],
        &["--exclusive", "--nb"],
    ];
    for held in [false, true] {
        let _theirs = held.then(|| {
            let file = File::create(&file).unwrap();
            file.lock().unwrap();
            file
        });
        let _ours = held.then(|| holder(&sandbox));
        for options in lines {
            for shell in ["-c", "--command"] {
                let script = "echo ran && exit 3";
                let mut flock = Command::new("flock");
                flock.args(options).args([&file, shell, script]);
                // It is on every Linux: without it, `apt-get install util-linux`.
                let theirs = ended(flock);
                let ours = sandbox.tenure(&[&["lock"], options, &["a", shell, script]].concat());
                assert_eq!(
                    (ours.code, ours.stdout.as_str()),
                    (theirs.code, theirs.stdout.as_str()),
                    "{options:?} {shell}, held: {held}: {ours:?}"
                );
                assert_eq!(theirs.stdout.is_empty(), held, "{options:?}: {theirs:?}");
            }
        }
    }
}

/// There 69 says that the store does not answer.
#[test]
fn a_command_that_cannot_be_started_ends_as_it_says_and_not_as_the_store() {
    let sandbox = Sandbox::new("flock-unstarted");
    let file = sandbox.path("lock-file");
    let unstarted = "/no/such/command";
    let folder = sandbox.path("");
    for (options, command, theirs, ours) in [
        (&[][..], unstarted, 69, 127),
        (&[], &folder, 69, 126),
        (&["--no-such-option"], unstarted, 64, 2),
    ] {
        let mut flock = Command::new("flock");
        flock.args(options).args([&file, command]);
        assert_eq!(ended(flock).code, theirs, "{options:?} {command}");
        let ended = sandbox.tenure(&[&["lock"], options, &["a", "--", command]].concat());
        assert_eq!(ended.code, ours, "{options:?} {command}: {ended:?}");
    }
}

#[test]
fn a_bare_number_is_seconds_for_a_lock_and_in_its_variable() {
    let sandbox = Sandbox::new("flock-seconds");
    let _holder = holder(&sandbox);
    for (wait, least) in [("1", 1_000), ("0.3", 300), ("300ms", 300)] {
        let began = Instant::now();
        let ended = sandbox.tenure(&["lock", "-w", wait, "-E", "8", "a", "--", "true"]);
        assert_eq!(ended.code, 8, "{wait}: {ended:?}");
        assert!(began.elapsed() >= Duration::from_millis(least), "{wait}");
    }
    let mut command = sandbox.command(&["lock", "a", "--", "true"]);
    command.env("TENURE_WAIT", "0.3");
    let told = ended(command);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("gave up after"), "{told:?}");
    for wrong in [
        "5x",
        "",
        ".",
        "1e3",
        "inf",
        "NaN",
        "1.2.3",
        "9999999999999999999999",
    ] {
        let ended = sandbox.tenure(&["lock", "-w", wrong, "a", "--", "true"]);
        assert_eq!(ended.code, 2, "{wrong:?}: {ended:?}");
    }
    // Of a ttl it is a slip: many count it in milliseconds.
    let ended = sandbox.tenure(&["run", "--ttl", "5", "b", "--", "true"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("write it like 30s"), "{ended:?}");
}

/// Both would be read differently by different people, and neither is a lock for nothing.
#[test]
fn a_lock_has_one_command_by_words_or_for_the_shell() {
    let sandbox = Sandbox::new("flock-command");
    let mut command = sandbox.command(&["lock", "a", "-c", "echo \"$TENURE_NAME $0\" && exit 4"]);
    // A fish or a bash of the user's would read another language.
    command.env("SHELL", "/bin/false");
    let told = ended(command);
    assert_eq!((told.code, told.stdout.as_str()), (4, "a /bin/sh\n"), "{told:?}");
    for arguments in [
        &["lock", "a"][..],
        &["lock", "a", "-c"],
        &["lock", "a", "-c", "true", "--", "true"],
        &["lock", "a", "-c", "echo", "ran"],
    ] {
        let ended = sandbox.tenure(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
    }
    let mut command = sandbox.command(&["lock", "a", "--", "echo", "by words"]);
    command.env("TENURE_COMMAND", "echo by the variable");
    assert_eq!(ended(command).stdout, "by words\n");
    let mut command = sandbox.command(&["lock", "a"]);
    command.env("TENURE_COMMAND", "echo \"by the variable${TENURE_COMMAND}\"");
    assert_eq!(ended(command).stdout, "by the variable\n");
}

/// The line that the README has for `( flock -n 9 || exit 1; … ) 9>FILE`.
fn line_of_a_script() -> String {
    let readme = include_str!("../README.md");
    let row = readme.lines().find(|line| line.contains("9>FILE")).unwrap();
    let line = row
        .split('`')
        .find(|part| part.contains("exec tenure lock"))
        .unwrap();
    line.replace("\\|", "|")
}

/// Also where a site has named a lease for its other commands.
#[test]
fn a_script_that_locks_itself_runs_once_at_a_time_whatever_the_environment_names() {
    for named in [None, Some("a"), Some("b")] {
        let sandbox = Sandbox::new("flock-script");
        let line = line_of_a_script().replace(" NAME", " a");
        let line = line.replace("exec tenure", &format!("exec {}", env!("CARGO_BIN_EXE_tenure")));
        let work = r#"echo "in $TENURE_NAME $1"; [ "$1" = quick ] || exec sleep 300"#;
        let script = sandbox.script("guard.sh", &format!("#!/bin/sh\n{line}\n{work}\n"));
        let start = |word: &str| {
            let mut guard = Command::new(&script);
            guard.arg(word).env("TENURE_STORE", &sandbox.store);
            guard.env_remove("TENURE_NAME").env_remove("TENURE_TOKEN");
            guard.envs(named.map(|name| ("TENURE_NAME", name)));
            guard
        };
        let first = Process::spawn(start("slow")).unwrap();
        first.wait_for_line("in a slow", SOON).unwrap();
        let second = ended(start("quick"));
        assert_eq!(
            (second.code, second.stdout.as_str()),
            (1, ""),
            "{named:?}: {second:?}"
        );
        first.terminate();
        first.wait_for_exit(SOON).unwrap();
        let third = ended(start("quick"));
        assert_eq!(
            (third.code, third.stdout.as_str()),
            (0, "in a quick\n"),
            "{named:?}: {third:?}"
        );
    }
}

#[test]
fn what_a_lock_across_machines_cannot_do_is_refused_with_what_to_do() {
    let sandbox = Sandbox::new("flock-refused");
    for (options, says) in [
        (["-s", "--shared"], "take turns"),
        (["-u", "--unlock"], "tenure step-down"),
        (["-o", "--close"], "leave it out"),
        (["-F", "--no-fork"], "leave it out"),
    ] {
        for option in options {
            for command in [&["-c", "echo ran"][..], &["--", "echo", "ran"], &[]] {
                let ended = sandbox.tenure(&[&["lock", option, "a"], command].concat());
                assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
                assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
                assert!(
                    ended.stderr.contains(options[1]) && ended.stderr.contains(says),
                    "{ended:?}"
                );
            }
        }
    }
}

#[test]
fn one_attempt_overtakes_nobody_who_waits_in_order() {
    let sandbox = Sandbox::new("flock-fair-look");
    let look = |option: &[&str]| {
        let ended = sandbox.tenure(
            &[
                &["lock", "--fair", "--ttl", UNHURRIED, "-E", "9"],
                option,
                &["a", "-c", "echo ran"],
            ]
            .concat(),
        );
        (ended.code, ended.stdout, ended.stderr)
    };
    let taken = (0, "ran\n".to_owned(), String::new());
    let refused = (9, String::new(), String::new());
    let looks = [&["-n"][..], &["-w", "0"]];
    for option in looks {
        assert_eq!(look(option), taken, "free: {option:?}");
    }
    let holder = holder(&sandbox);
    for option in looks {
        assert_eq!(look(option), refused, "held: {option:?}");
    }
    holder.terminate();
    exit_code(&holder);
    // Who waits holds this lease. One that has its turn would take the lock at once: this one never does.
    let place = ["lock", "--candidate", "first", "a/candidates/1/first"];
    let waits = sandbox.start(&[&place[..], &["-c", "echo waits; exec sleep 300"]].concat());
    waits.wait_for_line("waits", SOON).unwrap();
    assert_eq!(sandbox.lease("a")["state"], "vacant");
    for option in looks {
        assert_eq!(look(option), refused, "free, and somebody waits: {option:?}");
    }
    waits.terminate();
    exit_code(&waits);
    // Nor does who never leads hold anybody up.
    let place = ["lock", "--candidate", "never", "a/candidates/0/never"];
    let never = sandbox.start(&[&place[..], &["-c", "echo waits; exec sleep 300"]].concat());
    never.wait_for_line("waits", SOON).unwrap();
    for option in looks {
        assert_eq!(look(option), taken, "nobody waits any more: {option:?}");
    }
}
