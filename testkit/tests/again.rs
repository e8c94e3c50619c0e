//! Which failures of a run of tests are judged anew, and how: `.ci/again`.
use std::fs;
use std::path::Path;
use std::process::Command;
use tenure_testkit::ScratchDir;

/// What `.ci/again` says, and whether the run may go on, of a run of tests that printed `log`, where a test
/// alone does `alone`.
fn judged(log: &str, alone: &str, arguments: &[&str]) -> (bool, String) {
    let folder = ScratchDir::new("again");
    let (printed, program) = (folder.join("log"), folder.join("program"));
    fs::write(&printed, log).unwrap();
    let text = folder.join("text");
    fs::write(&text, format!("#!/bin/sh\n{alone}\n")).unwrap();
    // Written by another process: what a test of this one starts meanwhile would inherit the open file, which
    // nobody may start then.
    let mut install = Command::new("install");
    let installed = install.arg("-m755").arg(&text).arg(&program).status();
    assert!(installed.unwrap().success());
    let mut again = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/again"));
    again.env("CARGO", &program).env("RUNS", folder.join("runs"));
    again.arg(&printed).args(arguments);
    if !arguments.is_empty() {
        again.arg(&program);
    }
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

/// What cargo prints where these tests of `tenure-postgres` fail, with this as the reason.
fn log_of(names: &[&str], why: &str) -> String {
    let sections: String = names
        .iter()
        .map(|name| format!("---- {name} stdout ----\n{why}\n   0: a frame\n"))
        .collect();
    let list: String = names.iter().map(|name| format!("    {name}\n")).collect();
    format!(
        "     Running tests/main.rs (target/debug/deps/tests-0)\ntest one ... FAILED\n\nfailures:\n\n{sections}\n\nfailures:\n\
         {list}\ntest result: FAILED. 9 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n\n\
         error: test failed, to rerun pass `-p tenure-postgres --test tests`\n"
    )
}

const PASSES: &str = "echo \"$*\" >>\"$RUNS\"; echo 'test result: ok. 1 passed; 0 failed'";

#[test]
fn test_that_passes_alone_each_time_is_told_and_let_pass() {
    let log = log_of(&["one::two", "three"], "late");
    let (passed, said) = judged(&log, PASSES, &[]);
    assert!(passed, "{said}");
    for name in ["one::two", "three"] {
        let told = format!("PASSED ALONE 3 TIMES: -p tenure-postgres --test tests {name}\n");
        assert!(said.contains(&told), "{said}");
    }
    let (passed, said) = judged(&log, PASSES, &["stores/postgres"]);
    assert!(
        passed && said.contains("stores/postgres one::two"),
        "a program of tests: {said}"
    );
}

/// Also if it is not found alone, which is no pass.
#[test]
fn test_that_does_not_pass_alone_each_time_fails() {
    let third = format!("{PASSES}; [ $(wc -l <\"$RUNS\") -lt 3 ]");
    let none = "echo 'test result: ok. 0 passed; 0 failed'".to_owned();
    for (alone, run) in [(third, 3), (none, 1)] {
        let (passed, said) = judged(&log_of(&["one"], "late"), &alone, &[]);
        let told = format!("FAILED ALONE, TOO (run {run} of 3)");
        assert!(!passed && said.contains(&told), "{said}");
    }
}

#[test]
fn what_is_not_chance_is_not_judged_anew() {
    for (log, why) in [
        (
            log_of(&["one", "two", "three", "four", "five"], "late"),
            "5 tests failed",
        ),
        (
            log_of(&["one"], "late").replace("tenure-postgres", "tenure-core"),
            "needs no server",
        ),
        (
            "     Running tests/main.rs (target/debug/deps/tests-0)\ntest one ... \n\
             error: test failed, to rerun pass `-p tenure-postgres --test tests`\n"
                .to_owned(),
            "ended without a verdict",
        ),
        ("error: could not compile".to_owned(), "No test is named"),
    ] {
        let (passed, said) = judged(&log, PASSES, &[]);
        assert!(!passed && said.contains(why), "{why}: {said}");
    }
}

/// Whatever words it is told in, also beside a test that was late; an answer alone tells nothing where a
/// server was away.
#[test]
fn broken_promise_of_safety_is_not_judged_anew() {
    for broken in [
        "1 violation: two believe in job: another for 2 s more, and term 7",
        "one of 16 should have won, but [(3, Grant { token: 8 }), (9, Grant { token: 9 })] did",
        "later attempts have greater tokens: [9, 8]",
        "one attempt, one token: [Grant(8), Grant(9)]",
        "Grant { token: 7 } after Grant { token: 7 }",
        "renewal of \"job\" should have been lost, but got Extended",
        "a stale claim lowers nothing\n  left: 7\n right: 8",
        "assertion failed: Ok(Claimed { was: 7 }) is not stale",
        "a job started before the one before it had ended",
        "WhatItHears: a write of an older term was accepted",
        "assertion failed: won.token() > leadership.token()",
        "Both: the token did not rise",
        "it was taken while its holder believed in it",
        "both lists lead",
        "both ran at once",
        "let in beside an older term",
        "an older term wrote after a later one",
        "the claim overtook a write that was admitted",
    ] {
        let log = log_of(&["one"], "not within 5 s") + &log_of(&["two"], broken);
        let (passed, said) = judged(&log, PASSES, &[]);
        assert!(
            !passed && said.contains("a promise of safety was broken"),
            "{broken}: {said}"
        );
    }
    for name in [
        // A race shows in many words.
        "many_processes::killed_at_random_no_token_repeats_and_no_two_hold_at_once",
        "conformance::by_itself::losers_see_the_winner",
    ] {
        for (said_by_it, is_judged_anew) in [
            ("two at once: [Belief { token: 7 }]", false),
            ("assertion `left == right` failed\n  left: 0\n right: 100", false),
            (
                "that the standby leads: not within 30000 ms; last attempt: Held",
                true,
            ),
        ] {
            // What another test says is no excuse.
            let log = log_of(&[name], said_by_it) + &log_of(&["two"], "not within 5 s");
            let (passed, said) = judged(&log, PASSES, &[]);
            assert_eq!(passed, is_judged_anew, "{said_by_it}: {said}");
            assert!(
                passed || said.contains("is a test of a promise of safety"),
                "{said}"
            );
        }
    }
    for late in [
        "should have been Extended, but failed: TimedOut, Unknown: no answer in time",
        "that the standby leads: not within 30000 ms; last attempt: Held",
    ] {
        let (passed, said) = judged(&log_of(&["one"], late), PASSES, &[]);
        assert!(passed, "{late}: {said}");
    }
}
