//! The job on a real replica set of three, through real faults to processes and servers.

mod common;

use common::{assert_settled_exactly_once, drill, tokens};

const SHORT: [&str; 6] = ["--ledger", "mongodb", "--payments", "40000", "--ttl", "10s"];

/// One set for all faults: starting three servers takes longer than the run.
#[test]
fn kill_freeze_and_step_down_leave_every_payment_settled_once() {
    let summary = drill(
        &[
            &SHORT[..],
            &["--batch", "1000", "--faults", "kill,freeze,stepdown"],
        ]
        .concat(),
    );
    assert_settled_exactly_once(&summary, 40_000);
    let faults = summary["faults"].as_array().expect("a list of faults");
    let names: Vec<_> = faults
        .iter()
        .filter_map(|fault| fault["fault"].as_str())
        .collect();
    assert_eq!(names, ["kill", "freeze", "stepdown"], "{summary:#}");
    assert_eq!(faults[1]["refused"], true, "{summary:#}");
    let refusal = summary["refused"][0].as_str().expect("a refusal");
    assert!(refusal.contains("is stale for \"ledger\""), "{refusal}");
    assert!(
        tokens(&summary).windows(2).all(|pair| pair[0] < pair[1]),
        "{summary:#}"
    );
}

/// What a killed leader has open, the server keeps for a minute; its successor must not wait for that.
#[test]
fn successor_of_a_killed_leader_does_not_wait_for_its_open_transaction() {
    let summary = drill(&[&SHORT[..], &["--batch", "5000", "--faults", "kill"]].concat());
    assert_settled_exactly_once(&summary, 40_000);
    let recovery = summary["faults"][0]["recovery_ms"]
        .as_u64()
        .expect("milliseconds");
    assert!(recovery < 40_000, "{summary:#}");
}
