//! The unit in `deploy`, run as systemd runs it: there is none here to do it.

use crate::common::{SOON, Sandbox, exit_code};
use tenure_testkit::{Process, eventually};

const UNIT: &str = include_str!("../../deploy/tenure@.service");

/// The words of `ExecStart`. As systemd has it, `$JOB` alone becomes words, and `${JOB}` is one, whatever is
/// in it.
fn words(instance: &str, job: &str) -> Vec<String> {
    let start = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let start = start.unwrap().replace("%i", instance);
    let words = start.split(' ').flat_map(|word| match word {
        "$JOB" => job.split(' ').map(str::to_owned).collect(),
        _ => vec![word.replace("${JOB}", job)],
    });
    words.collect()
}

/// The unit's process, whose job is this script.
fn start(sandbox: &Sandbox, script: &str) -> Process {
    sandbox.script("job", &format!("#!/bin/sh\n{script}\n"));
    let job = format!("{} with arguments", sandbox.path("job"));
    let words = words("nightly", &job);
    let (program, arguments) = words.split_first().unwrap();
    assert!(program.ends_with("/tenure"), "{program}");
    let arguments: Vec<String> = arguments
        .iter()
        .map(|word| {
            word.replace(
                "unix:/run/tenure-nightly/",
                &format!("unix:{}/", sandbox.dir.path().display()),
            )
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Process::spawn(sandbox.command(&arguments)).unwrap()
}

/// Its own code may be one of those after which systemd starts nothing again, such as 2.
#[test]
fn the_unit_runs_a_job_with_arguments_again_whatever_its_code() {
    let sandbox = Sandbox::new("unit");
    let process = start(&sandbox, "echo $# $2 >> ran; exit 2");
    eventually(SOON, "two runs", || sandbox.read("ran").lines().count() >= 2);
    assert_eq!(sandbox.line("ran"), "2 arguments");
    assert_eq!(process.status(), None, "it has ended");
}

/// systemd sends SIGTERM to stop it, and takes any code but 0 for a failure unless the unit names it.
#[test]
fn what_tenure_ends_with_when_the_unit_is_stopped_is_no_failure() {
    let successes = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("SuccessExitStatus="));
    let successes = successes.unwrap_or_default();
    // The last is killed after the grace.
    for trap in ["-", "'exit 0'", "'exit 2'", "''"] {
        let sandbox = Sandbox::new("unit-stopped");
        let script = format!("trap {trap} TERM; echo ran > ran; while :; do sleep 0.05; done");
        let process = start(&sandbox, &script);
        sandbox.line("ran");
        process.terminate();
        let code = exit_code(&process).to_string();
        let is_success = code == "0" || successes.split(' ').any(|success| success == code);
        assert!(is_success, "{trap}: {code}");
    }
}
