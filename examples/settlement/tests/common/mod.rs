//! Runs the real program.

use serde_json::Value;
use std::process::{Command, Output};

/// Runs `settlement` with these arguments to its end.
pub fn settlement(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_settlement"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Runs a drill that must hold, and answers with its summary.
pub fn drill(arguments: &[&str]) -> Value {
    let output = settlement(&[&["drill", "--output", "json"], arguments].concat());
    assert!(output.status.success(), "the drill failed:\n{}", said(&output));
    summary(&output)
}

/// The summary that a drill has printed.
pub fn summary(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no summary ({error}):\n{}", said(output)))
}

/// All that a program has written.
pub fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Every payment once, every balance right, one writer after the other.
pub fn assert_settled_exactly_once(summary: &Value, payments: u64) {
    let findings = &summary["findings"];
    assert_eq!(findings["payments"], payments, "{summary:#}");
    assert_eq!(findings["settled_once"], payments, "{summary:#}");
    for none in [
        "missing",
        "doubled",
        "foreign",
        "accounts_off",
        "sum_of_balances",
        "out_of_order",
    ] {
        assert_eq!(findings[none], 0, "{none}: {summary:#}");
    }
    assert_eq!(summary["holds"], true, "{summary:#}");
}

/// The tokens of the terms that wrote, lowest first.
pub fn tokens(summary: &Value) -> Vec<u64> {
    let terms = summary["findings"]["terms"].as_array().expect("a list of terms");
    terms
        .iter()
        .map(|term| term["token"].as_u64().expect("a token"))
        .collect()
}
