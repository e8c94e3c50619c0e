//! The storm, in its short form: 64 clients that contend, most of them long after their term.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

fn storm(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ledger"))
        .arg("storm")
        .args(arguments)
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output, said)
}

/// The number that stands behind `what`.
fn number(said: &str, what: &str) -> u64 {
    let line = said.lines().find(|line| line.starts_with(what)).expect(said);
    line.split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn of_two_thousand_stale_requests_none_is_accepted_and_no_update_is_lost() {
    let (output, said) = storm(&["--stale", "2000"]);
    assert!(output.status.success(), "{said}");
    assert!(number(&said, "stale requests ") >= 2_000, "{said}");
    assert_eq!(number(&said, "stale requests accepted"), 0, "{said}");
    assert_eq!(number(&said, "lost updates"), 0, "{said}");
    assert!(number(&said, "terms that claimed") >= 10, "{said}");
    assert!(number(&said, "accepted writes") >= 10, "{said}");
}

/// The proof that the test above can fail.
#[test]
fn without_the_fence_the_same_storm_loses_updates_and_says_so() {
    let (output, said) = storm(&["--stale", "100", "--unfenced"]);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(number(&said, "stale requests accepted") > 0, "{said}");
    assert!(number(&said, "lost updates") > 0, "{said}");
    assert!(said.contains("holds                        false"), "{said}");
}
