//! The unit in `deploy`, run as systemd runs it: there is none here to do it.

use crate::common::{SOON, Sandbox};
use tenure_testkit::{Process, eventually};

const UNIT: &str = include_str!("../../deploy/tenure@.service");

/// The words of `ExecStart`. As systemd has it, `$JOB` alone becomes words, and `${JOB}` is one, whatever is in it.
fn words(instance: &str, job: &str) -> Vec<String> {
    let start = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let start = start.unwrap().replace("%i", instance);
    let words = start.split(' ').flat_map(|word| match word {
        "$JOB" => job.split(' ').map(str::to_owned).collect(),
        _ => vec![word.replace("${JOB}", job)],
    });
    words.collect()
}

/// Its own code may be one of those after which systemd starts nothing again, such as 2.
#[test]
fn the_unit_runs_a_job_with_arguments_again_whatever_its_code() {
    let sandbox = Sandbox::new("unit");
    sandbox.script("job", "#!/bin/sh\necho $# $2 >> ran\nexit 2\n");
    let job = format!("{} with arguments", sandbox.path("job"));
    let words = words("nightly", &job);
    let (program, arguments) = words.split_first().unwrap();
    assert!(program.ends_with("/tenure"), "{program}");
    let arguments: Vec<String> = arguments
        .iter()
        .map(|word| word.replace("unix:/run/", &format!("unix:{}/", sandbox.dir.path().display())))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let process = Process::spawn(sandbox.command(&arguments)).unwrap();
    eventually(SOON, "two runs", || sandbox.read("ran").lines().count() >= 2);
    assert_eq!(sandbox.line("ran"), "2 arguments");
    assert_eq!(process.status(), None, "it has ended");
}
