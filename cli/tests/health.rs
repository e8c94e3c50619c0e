//! What a health command is told, and what counts of what it says.

use crate::common::{SOON, Sandbox, exit_code};
use tenure_testkit::eventually;

/// As many failures as are too many in a row, each followed by a success before it comes to that.
#[test]
fn a_health_command_that_fails_now_and_then_ends_nothing_and_knows_the_term() {
    let sandbox = Sandbox::new("now-and-then");
    let asks = "echo \"$TENURE_NAME $TENURE_TOKEN\" >> asked; test $(($(wc -l < asked) % 3)) -eq 0";
    let often = [
        "--health-every",
        "20ms",
        "--health-timeout",
        "5m",
        "--health-retries",
        "3",
    ];
    let script = "echo \"$TENURE_NAME $TENURE_TOKEN\" > told
                  until [ -e asked ] && [ $(wc -l < asked) -ge 12 ]; do sleep 0.05; done; exit 4";
    let process = sandbox.run(&[&["--health-cmd", asks], &often[..]].concat(), "job", script);
    assert_eq!(exit_code(&process), 4, "{:?}", process.lines());
    let (told, asked) = (sandbox.line("told"), sandbox.read("asked"));
    assert!(asked.lines().all(|line| line == told), "{told}: {asked}");
}

/// The store has not ended the term, and gives the next to who asks: this host would have one after the
/// other, for ever.
#[test]
fn a_command_whose_warden_dies_has_no_other_turn_before_the_cool_down() {
    let sandbox = Sandbox::new("warden-dies");
    let options = ["--keep", "--cooldown", "1h"];
    let process = sandbox.run(&options, "job", "echo run >> runs; kill -KILL $PPID; sleep 300");
    process.wait_for_line("the warden of the command", SOON).unwrap();
    process.wait_for_line("campaigning again in", SOON).unwrap();
    assert_eq!(sandbox.lease("job")["state"], "vacant", "another may lead");
    process.terminate();
    assert_eq!(exit_code(&process), 143);
    assert_eq!(sandbox.read("runs"), "run\n");
}

/// It is well in its second term.
#[test]
fn a_command_that_was_not_well_has_another_turn_with_keep() {
    let sandbox = Sandbox::new("well-again");
    let asks = "test $(wc -l < runs) -ge 2";
    let health = [
        "--health-cmd",
        asks,
        "--health-every",
        "50ms",
        "--health-retries",
        "1",
    ];
    let options = [&["--keep", "--cooldown", "100ms"], &health[..]].concat();
    let process = sandbox.run(&options, "job", "echo run >> runs; exec sleep 300");
    eventually(SOON, "another turn", || sandbox.read("runs").lines().count() >= 2);
    process.wait_for_line("campaigning again in", SOON).unwrap();
    process.terminate();
    assert_eq!(exit_code(&process), 143);
}
