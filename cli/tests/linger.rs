//! A lease that is kept when its job has ended, so that no other host runs that again.

use crate::common::{SOON, Sandbox, children_of, exit_code, json, signal};
use rustix::process::Signal;
use std::time::Duration;
use tenure_testkit::{eventually, is_alive};

/// One whose clock is late comes when the job has ended.
#[test]
fn a_lease_that_lingers_is_held_after_the_job_and_given_back_on_a_signal_or_a_wish() {
    for ends in ["signal", "wish"] {
        let sandbox = Sandbox::new("linger");
        let options = ["--linger", "1h", "--ttl", "15s", "--renew", "500ms"];
        let first = sandbox.run(&options, "job", "echo $$ > pid; exit 3");
        let job = sandbox.pid("pid");
        eventually(SOON, "the job has ended", || !is_alive(job));
        // Longer than it takes to give a lease back.
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(first.status(), None);
        // Whoever asks or listens is told at once how it went.
        let told = first.lines().pop().map(|line| line.text).unwrap_or_default();
        assert!(
            told.contains("ended with exit status: 3; the lease is kept for 1h"),
            "{told}"
        );
        let history = json(&sandbox.tenure(&["history", "job", "--output", "json"]).stdout);
        let end = history["terms"][0]["end"].as_str().unwrap_or_default();
        assert!(
            end.starts_with("to be kept for 1h") && end.ends_with("exit status: 3"),
            "{history}"
        );
        let late = sandbox.tenure(&["run", "--no-wait", "job", "--", "touch", "ran"]);
        assert_eq!(late.code, 75, "{late:?}");
        match ends {
            "signal" => first.terminate(),
            _ => assert_eq!(sandbox.tenure(&["step-down", "job", "--wait", "30s"]).code, 0),
        }
        assert_eq!(exit_code(&first), 3, "the code is the job's");
        assert_eq!(sandbox.lease("job")["state"], "vacant");
        assert!(!sandbox.dir.join("ran").exists());
    }
}

/// It is then that others try again, who were cut off as well.
#[test]
fn an_outage_that_the_lease_outlives_does_not_end_a_linger() {
    let sandbox = Sandbox::new("linger-outage");
    let options = [
        "--linger", "1h", "--ttl", "30s", "--renew", "500ms", "--grace", "25s",
    ];
    let first = sandbox.run(&options, "job", "echo $$ > pid");
    let job = sandbox.pid("pid");
    eventually(SOON, "the job has ended", || !is_alive(job));
    let file = rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Past the doubt, which begins 5 s after the last renewal.
    std::thread::sleep(Duration::from_secs(8));
    file.execute_batch("ROLLBACK").unwrap();
    eventually(SOON, "a renewal", || {
        let lease = sandbox.lease("job");
        lease["state"] != "held" || lease["remaining_ms"].as_u64().unwrap() > 28_000
    });
    assert_eq!(sandbox.lease("job")["state"], "held");
    first.terminate();
    assert_eq!(exit_code(&first), 0);
}

#[test]
fn a_lease_lingers_no_longer_than_it_is_to() {
    let sandbox = Sandbox::new("linger-over");
    let ended = sandbox.tenure(&["run", "--linger", "200ms", "job", "--", "sh", "-c", "exit 3"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

/// By a debugger, or by whoever takes it for one that hangs, as its job has ended.
#[test]
fn a_tenure_that_is_stopped_for_a_moment_while_its_lease_lingers_holds_it_on() {
    let sandbox = Sandbox::new("linger-stopped");
    let options = ["--linger", "1h", "--ttl", "10s", "--renew", "500ms"];
    let process = sandbox.run(&options, "job", "exit 3");
    process.wait_for_line("the lease is kept", SOON).unwrap();
    // The lease would have ended by now, were it not renewed.
    std::thread::sleep(Duration::from_secs(11));
    signal(process.pid(), Signal::STOP);
    std::thread::sleep(Duration::from_millis(600));
    signal(process.pid(), Signal::CONT);
    assert_eq!(process.status(), None);
    let lease = sandbox.lease("job");
    assert_eq!((&lease["state"], &lease["terms"]), (&"held".into(), &1.into()));
    process.terminate();
    assert_eq!(exit_code(&process), 3);
}

/// Somebody who gave it back early would have another host run the job again.
#[test]
fn a_lease_that_lingers_is_given_back_by_nobody_when_tenure_is_killed() {
    let sandbox = Sandbox::new("linger-killed");
    let process = sandbox.run(&["--linger", "1h", "--ttl", "1h"], "job", "exit 3");
    process.wait_for_line("the lease is kept", SOON).unwrap();
    eventually(SOON, "its warden has ended", || children_of(process.pid()) == 0);
    signal(process.pid(), Signal::KILL);
    process.wait_for_exit(SOON).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(sandbox.lease("job")["state"], "held");
}
