//! A lease that is kept when its job has ended, so that no other host runs that again.

use crate::common::{SOON, Sandbox, exit_code, json};
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
