//! Under which label the metrics of a lease are told.

use crate::common::{SOON, Sandbox};
use crate::endpoint::{get, metric};
use tenure_testkit::{eventually, free_port};

/// A name for each order would be a series for each, for ever, wherever all the locks of a site are told of.
#[test]
fn locks_are_told_together_and_a_place_in_a_queue_is_not_told() {
    let sandbox = Sandbox::new("labels");
    let address = || format!("127.0.0.1:{}", free_port());
    let (locks, turns) = (address(), address());
    let timing = ["--ttl", "30s", "--renew", "300ms"];
    let lock = ["lock", "--fair", "--metrics", &locks];
    let _lock = sandbox.start(&[&lock[..], &timing, &["orders/7", "--", "sleep", "300"]].concat());
    let options = [&["--priority", "7", "--metrics", &turns], &timing[..]].concat();
    let _leader = sandbox.run(&options, "job", "sleep 300");
    for (address, lease, other) in [(&locks, "*", "orders/7"), (&turns, "job", "*")] {
        eventually(SOON, "a renewal", || {
            metric(address, &format!("lease_renewals{{lease=\"{lease}\"}}")).is_some()
        });
        assert_eq!(
            metric(address, &format!("leader_status{{lease=\"{lease}\"}}")),
            Some(1.0)
        );
        let (_, body) = get(address, "/metrics");
        // The place by which it waited was no lock.
        let attempts = metric(
            address,
            &format!("lease_acquisition_attempts{{lease=\"{lease}\"}}"),
        );
        let failures = body.lines().filter_map(|line| {
            let told = line.strip_prefix(&format!("lease_acquisition_failures{{lease=\"{lease}\""))?;
            told.rsplit(' ').next()?.parse::<f64>().ok()
        });
        assert_eq!(attempts, Some(1.0 + failures.sum::<f64>()), "{body}");
        let begun = metric(
            address,
            &format!("lease_terms_begun{{lease=\"{lease}\",after=\"vacant\"}}"),
        );
        assert_eq!(begun, Some(1.0), "{body}");
        assert!(!body.contains(&format!("lease=\"{other}\"")), "{body}");
    }
}

/// It is nobody's lock: who alerts on failures of locks is not called for it.
#[test]
fn a_place_that_was_not_had_is_told_of_as_a_place() {
    let sandbox = Sandbox::new("no-place");
    assert_eq!(sandbox.tenure(&["store", "init"]).code, 0);
    let file = rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let lock = sandbox.start(&["-v", "lock", "--fair", "orders/7", "--", "sleep", "300"]);
    let told = lock.wait_for_line("Attempt failed", SOON).unwrap();
    assert!(told.text.contains("place="), "{}", told.text);
}

/// Two that share a place are one in the order, and each waits for the other.
#[test]
fn a_place_that_another_process_has_is_told_of_as_a_place() {
    let sandbox = Sandbox::new("one-place");
    let fair = |candidate: &str| {
        let options = ["-v", "lock", "--fair", "--candidate", candidate];
        sandbox.start(&[&options[..], &["orders", "--", "sleep", "300"]].concat())
    };
    let _holder = fair("holder");
    sandbox.until_held("orders");
    let _waiter = fair("twin");
    sandbox.until_held("orders/candidates/1/twin");
    let told = fair("twin").wait_for_line("this candidate's id", SOON).unwrap();
    assert!(
        told.text.contains("place=orders/candidates/1/twin"),
        "{}",
        told.text
    );
}
