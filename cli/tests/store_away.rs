//! A store that is away when `tenure run` or `tenure lock` starts: it is waited for, as long as there is
//! patience.

use crate::common::{SOON, Sandbox, exit_code, json, signal};
use crate::endpoint::{get, metric};
use crate::manager::Manager;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;
use tenure_testkit::{Process, free_port};

/// One whose leases are in a folder that is not mounted yet.
fn unmounted(label: &str) -> Sandbox {
    let mut sandbox = Sandbox::new(label);
    sandbox.store = format!("sqlite:{}/leases.db", sandbox.path("mount"));
    sandbox
}

fn mount(sandbox: &Sandbox) {
    fs::create_dir(sandbox.dir.join("mount")).unwrap();
}

fn said(process: &Process, words: &str) -> Vec<String> {
    let lines = process.lines().into_iter().map(|line| line.text);
    lines.filter(|line| line.contains(words)).collect()
}

/// As during a fail-over at three in the morning, on every host at once.
#[test]
fn a_store_that_is_away_at_the_start_is_waited_for() {
    for command in [
        &["run", "--wait", "10m"][..],
        &["run"],
        &["lock", "--wait", "10m"],
    ] {
        let sandbox = unmounted("away-at-start");
        let process = sandbox.start(&[command, &["job", "--", "sh", "-c", "touch ran; exit 4"]].concat());
        let line = process.wait_for_line("trying on", SOON).unwrap();
        for part in ["lease \"job\"", "mount", "mkdir -p"] {
            assert!(line.text.contains(part), "{command:?}: {line:?}");
        }
        // More tries, which are not spoken of.
        std::thread::sleep(Duration::from_secs(4));
        assert_eq!(process.status(), None, "{command:?}");
        mount(&sandbox);
        assert_eq!(exit_code(&process), 4, "{command:?}");
        assert!(sandbox.dir.join("ran").exists());
        assert_eq!(
            said(&process, "trying on").len(),
            1,
            "{command:?}: {:?}",
            process.lines()
        );
        let elected = &said(&process, "elected after")[0];
        let seconds: f64 = elected
            .split_once("elected after ")
            .and_then(|(_, rest)| rest.split_once(['s', 'm']))
            .and_then(|(number, _)| number.trim().parse().ok())
            .unwrap_or_else(|| panic!("{elected}"));
        assert!(seconds >= 4.0, "the time away is a part of it: {elected}");
    }
}

#[test]
fn a_store_that_stays_away_ends_the_patience_and_no_wait_at_once() {
    let sandbox = unmounted("stays-away");
    let job = ["job", "--", "touch", "ran"];
    let waited = sandbox.tenure(&[&["run", "--wait", "1s"], &job[..]].concat());
    assert_eq!(waited.code, 69, "{waited:?}");
    let last = waited.stderr.lines().last().unwrap();
    assert!(
        last.contains("mount") && last.contains("gave up after"),
        "{waited:?}"
    );
    let once = sandbox.tenure(&[&["run", "--no-wait"], &job[..]].concat());
    assert_eq!((once.code, once.stderr.lines().count()), (69, 1), "{once:?}");
    assert!(!once.stderr.contains("trying on"), "{once:?}");
    assert!(!sandbox.dir.join("ran").exists());
}

/// Nothing would end that, and nobody hear of it; where a patience ends, the error is told then.
#[test]
fn a_store_that_is_waited_for_without_end_is_told_also_to_who_hears_errors_alone() {
    let sandbox = unmounted("away-quiet");
    let process = sandbox.start(&["run", "--quiet", "job", "--", "true"]);
    process.wait_for_line("trying on", SOON).unwrap();
    mount(&sandbox);
    assert_eq!(exit_code(&process), 0);
    assert_eq!(process.lines().len(), 1, "{:?}", process.lines());
    let unmounted = unmounted("away-quiet-limited");
    let waited = unmounted.tenure(&["run", "--quiet", "--wait", "3s", "job", "--", "true"]);
    assert_eq!(
        (waited.code, waited.stderr.lines().count()),
        (69, 1),
        "{waited:?}"
    );
}

#[test]
fn a_signal_ends_the_waiting_for_a_store_that_is_away() {
    let sandbox = unmounted("away-signal");
    let process = sandbox.run(&[], "job", "touch ran");
    process.wait_for_line("trying on", SOON).unwrap();
    signal(process.pid(), Signal::TERM);
    assert_eq!(exit_code(&process), 143);
}

/// What keeps it from being killed as not live, or as not started in time; and it takes no part in what a
/// rollout waits for. Where all candidates wait so, nothing but their metrics calls anybody.
#[test]
fn who_waits_for_a_store_that_is_away_is_seen_to_live_and_not_to_be_ready() {
    let sandbox = unmounted("away-pages");
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = sandbox.command(&["run", "--metrics", &address, "job", "--", "sleep", "300"]);
    let mut manager = Manager::of(&sandbox, &mut command);
    let process = Process::spawn(command).unwrap();
    manager.hear_until("READY=1");
    manager.hear_until("STATUS=waits for the store");
    assert_eq!(get(&address, "/livez").0, 200);
    assert_eq!(get(&address, "/readyz").0, 503);
    let of_job = |name: &str| metric(&address, &format!("{name}{{lease=\"job\"}}"));
    assert_eq!(
        (of_job("lease_candidates"), of_job("leader_status")),
        (Some(1.0), Some(0.0))
    );
    let unreachable = || of_job("lease_store_unreachable_since_timestamp_seconds");
    assert!(unreachable() > Some(0.0), "{:?}", unreachable());
    let (status, page) = get(&address, "/leader");
    assert_eq!((status, &json(&page)["leads"]), (503, &Value::Null), "{page}");
    mount(&sandbox);
    manager.hear_until("STATUS=leads by token");
    tenure_testkit::eventually(SOON, "it says that it leads", || {
        let (status, page) = get(&address, "/leader");
        status == 200 && json(&page)["leads"] == true
    });
    tenure_testkit::eventually(SOON, "it is ready", || get(&address, "/readyz").0 == 200);
    tenure_testkit::eventually(SOON, "the store is told to answer", || unreachable() == Some(0.0));
    assert_eq!(of_job("leader_status"), Some(1.0));
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}
