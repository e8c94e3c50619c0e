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

/// The exit code of one that may have waited for as long as its command says.
fn code_at_last(process: &Process, command: &[String]) -> Option<i32> {
    process.wait_for_exit(SOON + wait(command)).unwrap().code()
}

/// How long the command waits for its turn.
fn wait(command: &[String]) -> Duration {
    let option = command.iter().position(|word| word == "--wait");
    option.map_or(Duration::ZERO, |option| duration(&command[option + 1]))
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
        assert_eq!(
            code_at_last(&second, command),
            Some(0),
            "{command:?}: {:?}",
            second.lines()
        );
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
        let command = &commands(&sandbox)[place];
        assert_eq!(code_at_last(&start(&sandbox, command), command), Some(69));
        assert_eq!(sandbox.read("log"), "");
    }
}

/// A try at a store that does not answer, and the start of a process or a pod, take less beyond what the
/// command waits.
const TRY_MAX: Duration = Duration::from_secs(30);

/// `30m`, `60s` or `2h` of a file in `deploy`.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => panic!("{text}"),
    };
    Duration::from_secs(number.parse::<u64>().unwrap() * seconds)
}

/// How long the command keeps the lease when the job has ended.
fn linger(command: &[String]) -> Duration {
    let option = command.iter().position(|word| word == "--linger").unwrap();
    duration(&command[option + 1])
}

/// What stands behind this key of the manifest.
fn field(key: &str) -> &'static str {
    let behind = |line: &'static str| line.trim_start().strip_prefix(key)?.strip_prefix(": ");
    MANIFEST.lines().find_map(behind).unwrap()
}

/// One that was cut off from the store at first would run it a second time.
#[test]
fn a_nightly_lease_is_kept_for_longer_than_anybody_tries_again() {
    let [unit, pod] = commands(&Sandbox::new("nightly-tries"));
    let starts: u32 = setting(UNIT, "StartLimitBurst").parse().unwrap();
    let pause = Duration::from_secs(setting(UNIT, "RestartSec").parse().unwrap());
    let tries = (pause + wait(&unit) + TRY_MAX) * starts;
    assert!(tries <= linger(&unit), "{tries:?}");
    assert!(
        tries < duration(setting(UNIT, "StartLimitIntervalSec")),
        "then it may start again"
    );

    // Kubernetes waits for ten seconds, and each time for twice as long.
    let again: u32 = field("backoffLimit").parse().unwrap();
    let pauses: Duration = (0..again)
        .map(|time| Duration::from_secs(10) * 2_u32.pow(time))
        .sum();
    let late = Duration::from_secs(field("startingDeadlineSeconds").parse().unwrap());
    let tries = late + pauses + (wait(&pod) + TRY_MAX) * (again + 1);
    assert!(tries < linger(&pod), "{tries:?}");
}

/// Kubernetes looks for a job's start every ten seconds: within fewer it may miss it.
#[test]
fn a_nightly_job_is_made_up_for_only_while_another_keeps_the_lease() {
    let late = field("startingDeadlineSeconds").parse().unwrap();
    let [_, pod] = commands(&Sandbox::new("nightly-late"));
    assert!(late > 10 && Duration::from_secs(late) < linger(&pod), "{late}");
    assert!(!TIMER.contains("Persistent"));
    assert!(
        setting(TIMER, "OnCalendar").ends_with(" UTC"),
        "each host has a zone of its own"
    );
}

/// The first rule that fits counts, and by its code a pod that was evicted would end the night.
#[test]
fn the_job_of_a_pod_that_is_evicted_is_left_to_another_pod() {
    let evicted = "- action: Ignore\n            onPodConditions: [{type: DisruptionTarget";
    let (evicted, failed) = (MANIFEST.find(evicted), MANIFEST.find("- action: FailJob"));
    assert!(evicted.is_some() && evicted < failed, "{evicted:?} {failed:?}");
    assert_eq!(
        setting(UNIT, "SuccessExitStatus"),
        "143",
        "a unit that is stopped has not failed"
    );
    for place in [0, 1] {
        let sandbox = Sandbox::new("nightly-evicted");
        sandbox.script("job", "#!/bin/sh\necho ran > ran; exec sleep 300\n");
        let process = start(&sandbox, &commands(&sandbox)[place]);
        sandbox.line("ran");
        process.terminate();
        assert_eq!(exit_code(&process), 143);
        assert_eq!(
            sandbox.lease("nightly")["state"],
            "vacant",
            "another has it at once"
        );
    }
}

/// As a host that has lost its power, or a kubelet that gives it no time to end. So does one whose
/// acquisition the store has applied, and whose answer was lost.
#[test]
fn the_job_of_a_host_that_was_killed_is_run_by_the_next() {
    let killed = [0, 1].map(|place| {
        let sandbox = Sandbox::new("nightly-killed");
        let job = "#!/bin/sh\n[ -e killed ] && { echo ran > ran; exit 0; }\necho $$ > pid; exec sleep 300\n";
        sandbox.script("job", job);
        let command = commands(&sandbox)[place].clone();
        let killed = start(&sandbox, &command);
        let work = sandbox.pid("pid");
        killed.kill_all_at_once();
        eventually(SOON, "all of it is gone", || !is_alive(work));
        std::fs::write(sandbox.path("killed"), "").unwrap();
        assert_eq!(sandbox.lease("nightly")["state"], "held", "nobody gives it back");
        let next = start(&sandbox, &command);
        (sandbox, command, next)
    });
    for (sandbox, command, next) in killed {
        eventually(SOON + wait(&command), "it is run", || {
            sandbox.read("ran") == "ran\n"
        });
        next.terminate();
        assert_eq!(exit_code(&next), 0, "{command:?}");
    }
}

#[test]
fn the_timer_is_late_by_less_than_the_lease_is_kept() {
    let [unit, _] = commands(&Sandbox::new("nightly-timer"));
    assert!(duration(setting(TIMER, "AccuracySec")) * 10 < linger(&unit));
}
