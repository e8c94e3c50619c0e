//! `tenure run --trace`: what a real process recorded replays, whatever ended it.

use crate::common::{SOON, Sandbox, exit_code};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use tenure::trace::{self, MergeError, Verdict};
use tenure_testkit::eventually;

/// How many lines a trace has now.
fn lines(sandbox: &Sandbox, file: &str) -> usize {
    sandbox.read(file).lines().count()
}

fn run(sandbox: &Sandbox, file: &str, script: &str) -> tenure_testkit::Process {
    let options = [
        "--ttl",
        "10s",
        "--renew",
        "500ms",
        "--trace",
        file,
        "--candidate",
        file,
    ];
    sandbox.run(&options, "job", script)
}

#[test]
fn a_killed_leader_and_its_successor_leave_traces_that_agree() {
    let sandbox = Sandbox::new("trace");
    let leader = run(&sandbox, "first", "sleep 600");
    sandbox.until_held("job");
    let standby = run(&sandbox, "second", "echo took over");
    standby.wait_for_line("waiting", SOON).unwrap();
    // A few renewals first.
    let before = lines(&sandbox, "first");
    eventually(SOON, "renewals are recorded", || {
        lines(&sandbox, "first") > before + 8
    });
    // Nobody is left to give the lease back.
    leader.kill_all_at_once();
    standby.wait_for_line("took over", SOON).unwrap();
    assert_eq!(exit_code(&standby), 0);

    let paths = ["first", "second"].map(|file| sandbox.dir.join(file));
    for path in &paths {
        let replayed = trace::replay_file(path).unwrap();
        assert_eq!(replayed.verdict, Verdict::Same, "{}", path.display());
        assert!(replayed.steps > 4, "{replayed:?}");
    }
    let merged = trace::merge_files(&paths).unwrap();
    assert_eq!((merged.breach, merged.terms, merged.passed_on), (None, 2, 1));
    let (first, second) = (
        trace::check_file(&paths[0]).unwrap(),
        trace::check_file(&paths[1]).unwrap(),
    );
    assert!(!first.terms[0].ended, "nobody was left to tell of the end");
    assert!(second.terms[0].ended && second.terms[0].from >= first.terms[0].until);
    let told: Vec<String> = trace::narrate_file(&paths[1])
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for part in [
        "STANDBY behind first#",
        "ACQUIRED \"job\"",
        "given back",
        "departed: vacated",
    ] {
        assert!(
            told.iter().any(|line| line.contains(part)),
            "{part}:\n{}",
            told.join("\n")
        );
    }
}

/// Ten days ahead, as a container that was moved here may be: who led when is not to be told from the two.
#[test]
fn traces_of_shifted_clocks_are_not_held_against_each_other() {
    let sandbox = Sandbox::new("trace-shifted");
    assert_eq!(exit_code(&run(&sandbox, "first", "true")), 0);
    let shifted = |file: &str, days: u64| {
        let mut command = tenure_testkit::on_a_clock_that_is_ahead(days * 86_400);
        command.arg(env!("CARGO_BIN_EXE_tenure"));
        command.args(["run", "--trace", &sandbox.path(file), "job", "--", "true"]);
        command.env("TENURE_STORE", &sandbox.store);
        let ended = crate::common::ended(command);
        assert_eq!(
            ended.code, 0,
            "{ended:?}\nthis test needs unprivileged user namespaces"
        );
        sandbox.dir.join(file)
    };
    let (second, third) = (shifted("second", 10), shifted("third", 10));
    let unshifted = shifted("unshifted", 0);
    let first = sandbox.dir.join("first");
    assert_eq!(
        trace::merge_files(&[&first, &second]),
        Err(MergeError::AnotherBoot { trace: 1 })
    );
    for alike in [[&second, &third], [&first, &unshifted]] {
        let merged = trace::merge_files(&alike).unwrap();
        assert_eq!((merged.breach, merged.terms), (None, 2));
    }
}

#[test]
fn a_tampered_trace_is_found_out() {
    let sandbox = Sandbox::new("trace-tampered");
    assert_eq!(exit_code(&run(&sandbox, "trace", "true")), 0);
    let text = sandbox.read("trace");
    let (line, acquired) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("\"granted\""))
        .unwrap();
    let (before, rest) = acquired.split_once("\"until\":").unwrap();
    let (until, after) = rest.split_once(',').unwrap();
    let later = until.parse::<u64>().unwrap() + 1;
    let tampered = text.replace(acquired, &format!("{before}\"until\":{later},{after}"));
    fs::write(sandbox.dir.join("tampered"), tampered).unwrap();
    let Verdict::Different(difference) = trace::replay_file(sandbox.dir.join("tampered")).unwrap().verdict
    else {
        panic!("nothing was found");
    };
    assert_eq!(difference.line, line as u64 + 1);
    let breach = trace::check_file(sandbox.dir.join("tampered"))
        .unwrap()
        .breach
        .unwrap();
    assert_eq!(
        (breach.line, breach.rule),
        (line as u64 + 1, trace::Rule::BelievesWithinGrant)
    );
}

#[test]
fn a_trace_is_private_holds_no_secret_and_is_not_the_commands() {
    let sandbox = Sandbox::new("trace-private");
    let mut command = sandbox.command(&["run", "job", "--", "sh", "-c", "echo \"[$TENURE_TRACE]\""]);
    command.env("TENURE_TRACE", sandbox.path("trace"));
    let ended = crate::common::ended(command);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "[]\n"), "{ended:?}");
    let mode = sandbox.dir.join("trace").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = sandbox.read("trace");
    assert!(
        text.contains("\"store\":\"sqlite\"") && !text.contains("leases.db"),
        "{text}"
    );
}

#[test]
fn a_trace_that_cannot_be_begun_is_refused_before_anybody_leads() {
    let sandbox = Sandbox::new("trace-refused");
    fs::write(sandbox.dir.join("old"), "kept\n").unwrap();
    for (file, part) in [
        ("old", "never overwritten"),
        ("missing/trace", "a folder that you may write to"),
    ] {
        let ran = format!("touch {}", sandbox.path("ran"));
        let ended = sandbox.tenure(&["run", "--trace", file, "job", "--", "sh", "-c", &ran]);
        assert_eq!((ended.code, ended.stdout.as_str()), (78, ""), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(
            ended.stderr.contains(part) && ended.stderr.contains(file),
            "{ended:?}"
        );
        assert!(!sandbox.dir.join("ran").exists());
    }
    assert_eq!(sandbox.read("old"), "kept\n");
}
