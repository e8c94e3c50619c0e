//! The job on SQLite, through real faults to real processes.

mod common;

use common::{assert_settled_exactly_once, drill, said, settlement, summary, tokens};

const SHORT: [&str; 4] = ["--payments", "60000", "--ttl", "2s"];

#[test]
fn undisturbed_run_settles_every_payment_once_in_one_term() {
    let summary = drill(&[&SHORT[..], &["--faults", "none"]].concat());
    assert_settled_exactly_once(&summary, 60_000);
    assert_eq!(
        summary["refused"].as_array().map(Vec::len),
        Some(0),
        "{summary:#}"
    );
}

#[test]
fn killed_leader_is_succeeded_and_every_payment_is_settled_once() {
    let summary = drill(&[&SHORT[..], &["--faults", "kill"]].concat());
    assert_settled_exactly_once(&summary, 60_000);
    assert_eq!(summary["faults"][0]["fault"], "kill", "{summary:#}");
    assert!(tokens(&summary).len() >= 2, "{summary:#}");
}

#[test]
fn frozen_leader_wakes_up_and_its_stale_write_is_refused() {
    let summary = drill(&[&SHORT[..], &["--faults", "freeze"]].concat());
    assert_settled_exactly_once(&summary, 60_000);
    assert_eq!(summary["faults"][0]["refused"], true, "{summary:#}");
    let refusal = summary["refused"][0].as_str().expect("a refusal");
    let (old, new) = (tokens(&summary)[0], tokens(&summary)[1]);
    assert!(old < new, "{summary:#}");
    let (refused, mark) = refusal
        .split_once(" is stale for \"ledger\", which term ")
        .expect("the fence's words");
    assert!(refused.ends_with(&format!("refused: token {old}")), "{refusal}");
    let mark: u64 = mark
        .split(' ')
        .next()
        .and_then(|mark| mark.parse().ok())
        .expect("a token");
    // A third term may have claimed by then, and found nothing left to do.
    assert!(mark >= new, "{refusal}");
}

/// The proof that a drill can fail: the same freeze, without the fence.
#[test]
fn without_the_fence_the_same_freeze_settles_payments_twice_and_the_check_says_so() {
    let output = settlement(
        &[
            &["drill", "--output", "json", "--faults", "freeze", "--unfenced"],
            &SHORT[..],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let summary = summary(&output);
    assert_eq!(summary["holds"], false, "{summary:#}");
    let findings = &summary["findings"];
    assert!(
        findings["doubled"]
            .as_u64()
            .is_some_and(|doubled| doubled >= 5_000),
        "{summary:#}"
    );
    assert!(
        findings["accounts_off"].as_u64().is_some_and(|off| off > 0),
        "{summary:#}"
    );
    assert_eq!(
        summary["refused"].as_array().map(Vec::len),
        Some(0),
        "{summary:#}"
    );
}

#[test]
fn step_down_of_a_primary_needs_a_store_that_has_one() {
    let output = settlement(&["drill", "--payments", "10000", "--faults", "stepdown"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("stepdown needs --ledger mongodb"),
        "{}",
        said(&output)
    );
}
