//! The timer's unit and the CronJob in `deploy`, run as systemd and a kubelet run them.

use crate::common::{SOON, Sandbox, exit_code};
use std::time::Duration;
use tenure_testkit::{Process, eventually, is_alive};

const UNIT: &str = include_str!("../../deploy/tenure-nightly@.service");
const TIMER: &str = include_str!("../../deploy/tenure-nightly@.timer");
const MANIFEST: &str = include_str!("../../deploy/cronjob.yaml");

/// What stands behind this key of a unit.
fn setting(unit: &'static str, key: &str) -> &'static str {
    let behind = |line: &'static str| line.strip_prefix(key)?.strip_prefix('=');
    unit.lines().find_map(behind).unwrap()
}

/// The words of the command of each, whose job is the script `job`.
fn commands(sandbox: &Sandbox) -> [Vec<String>; 2] {
    let job = sandbox.path("job");
    let unit = setting(UNIT, "ExecStart")
        .replace("%i", "nightly")
        .replace("$JOB", &job);
    let list = MANIFEST
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("command: ["));
    let list = list.and_then(|list| list.strip_suffix(']')).unwrap();
    let pod = list.replace("/usr/local/bin/nightly", &job);
    let of_pod = pod.split(", ").map(|word| word.trim_matches('"').to_owned());
    [unit.split(' ').map(str::to_owned).collect(), of_pod.collect()]
}

fn start(sandbox: &Sandbox, command: &[String]) -> Process {
    assert!(command[0].ends_with("tenure"), "{command:?}");
    let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
    Process::spawn(sandbox.command(&arguments)).unwrap()
}

/// The second comes when a short job has ended, as where a clock is late.
#[test]
fn a_nightly_job_is_run_once_by_two_whose_clocks_differ() {
    for place in [0, 1] {
        let sandbox = Sandbox::new("nightly");
        sandbox.script("job", "#!/bin/sh\necho ran >> log; echo $$ > pid; exit 3\n");
        let command = &commands(&sandbox)[place];
        let first = start(&sandbox, command);
        let job = sandbox.pid("pid");
        eventually(SOON, "the job has ended", || !is_alive(job));
        std::thread::sleep(Duration::from_secs(1));
        let second = start(&sandbox, command);
        assert_eq!(exit_code(&second), 0, "{command:?}: {:?}", second.lines());
        first.terminate();
        assert_eq!(exit_code(&first), 3, "the code is the job's");
        assert_eq!(sandbox.read("log"), "ran\n");
    }
}

/// Both start it again where the code says that the store is away, and after no other.
#[test]
fn a_nightly_job_is_tried_again_while_the_store_is_away() {
    assert_eq!(setting(UNIT, "RestartForceExitStatus"), "69");
    assert!(MANIFEST.contains("onExitCodes: {operator: NotIn, values: [69]}"));
    for place in [0, 1] {
        let mut sandbox = Sandbox::new("nightly-away");
        sandbox.script("job", "#!/bin/sh\necho ran >> log\n");
        sandbox.store = format!("sqlite:{}/leases.db", sandbox.path("mount"));
        assert_eq!(exit_code(&start(&sandbox, &commands(&sandbox)[place])), 69);
        assert_eq!(sandbox.read("log"), "");
    }
}

#[test]
fn the_timer_is_late_by_less_than_the_lease_is_kept() {
    let seconds = |text: &str| text.strip_suffix('s').unwrap().parse::<u64>().unwrap();
    let words: Vec<&str> = setting(UNIT, "ExecStart").split(' ').collect();
    let linger = words.iter().position(|word| *word == "--linger").unwrap() + 1;
    assert!(seconds(setting(TIMER, "AccuracySec")) * 10 < seconds(words[linger]));
}
