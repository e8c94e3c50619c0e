//! Handing over on purpose.

use crate::common::{SOON, Sandbox, exit_code, json};
use tenure_testkit::eventually;

/// Renewed often, so that the holder learns of a wish soon, and long enough that no busy machine ends it.
const QUICK: [&str; 4] = ["--ttl", "15s", "--renew", "500ms"];

#[test]
fn step_down_hands_over_to_a_standby_and_says_to_whom() {
    let sandbox = Sandbox::new("hand-over");
    let first = sandbox.run(
        &[&QUICK[..], &["--candidate", "one"]].concat(),
        "job",
        "sleep 300",
    );
    sandbox.until_held("job");
    let second = sandbox.run(
        &[&QUICK[..], &["--candidate", "two"]].concat(),
        "job",
        "echo mine; sleep 300",
    );
    second.wait_for_line("waiting", SOON).unwrap();
    let before = sandbox.lease("job")["token"].clone();
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "30s", "--output", "json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let told = json(&ended.stdout);
    assert_eq!(told["ended"]["holder"], "one");
    assert_eq!(told["ended"]["token"], before);
    assert_eq!(told["successor"]["holder"], "two");
    assert!(told["successor"]["token"].as_u64() > before.as_u64());
    assert_eq!(exit_code(&first), 79);
    first.wait_for_line("asked to step down", SOON).unwrap();
    second.wait_for_line("mine", SOON).unwrap();
}

#[test]
fn keep_goes_back_to_waiting_and_runs_again() {
    let sandbox = Sandbox::new("keep");
    let options = [&QUICK[..], &["--keep"]].concat();
    let first = sandbox.run(&options, "job", "echo run $TENURE_TOKEN; sleep 300");
    let began = first.wait_for_line("run ", SOON).unwrap();
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "30s"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let again = first.wait_for_line_from(began.index + 1, "run ", SOON).unwrap();
    assert_ne!(again.text, began.text, "the same token twice");
    first.terminate();
    assert_eq!(exit_code(&first), 143);
}

#[test]
fn keep_ends_with_a_command_that_ends_by_itself() {
    let sandbox = Sandbox::new("keep-ends");
    let process = sandbox.run(&["--keep"], "job", "exit 6");
    assert_eq!(exit_code(&process), 6);
}

#[test]
fn force_vacates_without_the_holder_who_then_loses() {
    let sandbox = Sandbox::new("force");
    let first = sandbox.run(&QUICK, "job", "sleep 300");
    sandbox.until_held("job");
    let ended = sandbox.tenure(&["step-down", "job", "--force"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("only a fence"), "{ended:?}");
    assert_eq!(exit_code(&first), 79);
}

#[test]
fn only_the_term_that_is_meant_steps_down() {
    let sandbox = Sandbox::new("wrong-token");
    let _holder = sandbox.run(&[], "job", "sleep 300");
    sandbox.until_held("job");
    let ended = sandbox.tenure(&["step-down", "job", "--token", "7"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("token 7 is not the current one"),
        "{ended:?}"
    );
    assert_eq!(sandbox.lease("job")["state"], "held");
}

#[test]
fn a_holder_that_does_not_answer_is_reported() {
    let sandbox = Sandbox::new("no-answer");
    // Without the note of its beginning: frozen in the middle of a write, it would hold the store's file.
    let holder = sandbox.run(&["--ttl", "10m", "--no-history"], "job", "sleep 300");
    sandbox.until_held("job");
    holder.freeze();
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "300ms"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("has not ended after 300ms"), "{ended:?}");
    assert_eq!(sandbox.lease("job")["state"], "stepping down");
    holder.thaw();
}

#[test]
fn stepping_down_what_nobody_holds_is_done_at_once() {
    let sandbox = Sandbox::new("nobody");
    let ended = sandbox.tenure(&["step-down", "job"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "lease \"job\": nobody holds it\n")
    );
}

#[test]
fn handing_over_to_somebody_who_is_not_there_fails_though_nobody_holds_it() {
    let sandbox = Sandbox::new("nobody-to");
    let ended = sandbox.tenure(&["step-down", "job", "--to", "host-7"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    assert!(
        ended.stderr.contains("no candidate \"host-7\" waits"),
        "{ended:?}"
    );
}

/// A command that steps its own term down needs no arguments but those it was given.
#[test]
fn a_command_can_hand_its_own_term_over() {
    let sandbox = Sandbox::new("own-term");
    let script = format!("{} step-down --wait 0s; sleep 300", env!("CARGO_BIN_EXE_tenure"));
    let process = sandbox.run(&QUICK, "job", &script);
    assert_eq!(exit_code(&process), 79);
    eventually(SOON, "it is given back", || {
        sandbox.lease("job")["state"] == "vacant"
    });
}

/// The token in the environment is that of the command's own lease.
#[test]
fn an_inherited_token_counts_for_its_own_lease_only() {
    let sandbox = Sandbox::new("inherited");
    let other = sandbox.run(&QUICK, "other", "sleep 300");
    sandbox.until_held("other");
    let script = format!("{} step-down other --wait 30s", env!("CARGO_BIN_EXE_tenure"));
    assert_eq!(exit_code(&sandbox.run(&[], "job", &script)), 0);
    assert_eq!(exit_code(&other), 79);
}
