//! Handing over on purpose.

use crate::common::{SOON, Sandbox, StoreAway, exit_code, json};
use std::time::Duration;
use tenure_testkit::{Process, eventually};

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
    let mut began = first.wait_for_line("run ", SOON).unwrap();
    // It is asked, and then it loses its term.
    for how in [&["--wait", "30s"][..], &["--force"]] {
        let ended = sandbox.tenure(&[&["step-down", "job"], how].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        let again = first.wait_for_line_from(began.index + 1, "run ", SOON).unwrap();
        assert_ne!(again.text, began.text, "the same token twice");
        began = again;
    }
    first.terminate();
    assert_eq!(exit_code(&first), 143);
}

/// Whoever asked wants another to lead, which may have to look before it knows.
#[test]
fn keep_leaves_others_a_renewal_interval_after_it_was_asked_to_step_down() {
    let sandbox = Sandbox::new("keep-waits");
    let options = ["--ttl", "15s", "--renew", "2s", "--keep"];
    // Seconds since the machine was started.
    let script = "trap 'cat /proc/uptime >> ended; exit' TERM; cat /proc/uptime >> began; while :; do sleep 0.05; done";
    let _holder = sandbox.run(&options, "job", script);
    sandbox.line("began");
    let ended = sandbox.tenure(&["step-down", "job", "--wait", "30s"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    eventually(SOON, "the next term", || {
        sandbox.read("began").lines().count() == 2
    });
    let at = |file: &str| -> f64 {
        let told = sandbox.read(file);
        let last = told.lines().last().unwrap();
        last.split(' ').next().unwrap().parse().unwrap()
    };
    // It tells hundredths.
    assert!(
        at("began") - at("ended") > 1.98,
        "{} {}",
        at("ended"),
        at("began")
    );
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

/// Several, as it is chance whether the holder hears of the doubt or of the end of its term first.
#[test]
fn a_term_that_is_over_is_told_as_that_and_its_command_is_killed_and_not_asked() {
    let sandbox = Sandbox::new("over");
    let script = format!(
        "trap 'echo $TENURE_NAME >> {}' TERM; while :; do sleep 0.05; done",
        sandbox.path("asked")
    );
    let names: Vec<String> = (0..16).map(|number| format!("job-{number}")).collect();
    // They write to one file: a busy disk must bring none of them into doubt.
    let options = ["--ttl", "10m", "--renew", "1s", "--no-history"];
    let holders: Vec<_> = names
        .iter()
        .map(|name| sandbox.run(&options, name, &script))
        .collect();
    for name in &names {
        sandbox.until_held(name);
        let ended = sandbox.tenure(&["step-down", name, "--force"]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    for holder in &holders {
        assert_eq!(exit_code(holder), 79);
        let said: Vec<String> = holder.lines().into_iter().map(|line| line.text).collect();
        assert!(
            said.iter()
                .any(|line| line.contains("sh with it: it expired or was broken")),
            "{said:?}"
        );
        assert!(!said.iter().any(|line| line.contains("doubtful")), "{said:?}");
    }
    assert_eq!(sandbox.read("asked"), "");
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
    assert!(
        ended
            .stderr
            .contains("has not ended after 300ms; it ends when its holder hears of it"),
        "{ended:?}"
    );
    assert_eq!(sandbox.lease("job")["state"], "stepping down");
    holder.thaw();
}

/// It was killed with its warden, so that nothing gives the lease back: nobody has stepped down.
#[test]
fn a_holder_whose_lease_expired_has_not_stepped_down() {
    for form in ["text", "json"] {
        let sandbox = Sandbox::new("expired");
        let options = ["--ttl", "10s", "--candidate", "one", "--no-history"];
        let holder = sandbox.run(&options, "job", "echo works; sleep 300");
        holder.wait_for_line("works", SOON).unwrap();
        let token = sandbox.lease("job")["token"].clone();
        holder.kill_all_at_once();
        let ended = sandbox.tenure(&["step-down", "job", "--wait", "60s", "--output", form]);
        assert_eq!(ended.code, 0, "{ended:?}");
        match form {
            "text" => {
                assert!(!ended.stdout.contains("stepped down"), "{ended:?}");
                assert!(ended.stdout.contains("has not answered"), "{ended:?}");
                assert!(ended.stdout.contains("only a fence"), "{ended:?}");
            }
            _ => {
                let told = json(&ended.stdout)["ended"].clone();
                assert_eq!((&told["how"], &told["token"]), (&"expired".into(), &token));
            }
        }
    }
}

#[test]
fn how_a_term_ended_is_said_as_far_as_the_record_tells() {
    let sandbox = Sandbox::new("how");
    let step_down = |options: &[&str]| {
        let holder = sandbox.run(&QUICK, "job", "echo works; sleep 300");
        holder.wait_for_line("works", SOON).unwrap();
        let arguments = ["step-down", "job", "--wait", "30s", "--output", "json"];
        let ended = sandbox.tenure(&[&arguments[..], options].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(exit_code(&holder), 79);
        json(&ended.stdout)["ended"]["how"].clone()
    };
    assert_eq!(step_down(&[]), "released");
    assert_eq!(step_down(&["--force"]), "vacated");
}

#[test]
fn a_token_is_looked_at_though_nobody_holds_the_lease() {
    let sandbox = Sandbox::new("token-of-nobody");
    let never = sandbox.tenure(&["step-down", "job", "--token", "7"]);
    assert_eq!((never.code, never.stdout.as_str()), (1, ""), "{never:?}");
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    let last = sandbox.lease("job")["token"].as_u64().unwrap();
    let other = (last - 1).to_string();
    let earlier = sandbox.tenure(&["step-down", "job", "--token", &other]);
    assert_eq!((earlier.code, earlier.stdout.as_str()), (1, ""), "{earlier:?}");
    assert!(
        earlier.stderr.contains(&format!("had token {last}")),
        "{earlier:?}"
    );
    // That term has ended, as was wished.
    let over = sandbox.tenure(&["step-down", "job", "--token", &last.to_string()]);
    assert_eq!(over.code, 0, "{over:?}");
}

#[test]
fn stepping_down_what_nobody_holds_is_done_at_once() {
    let sandbox = Sandbox::new("nobody");
    // Mistyped, or another user's store: the script that goes on to deploy says which.
    let place = sandbox.path("leases.db");
    let never = format!("lease \"job\": never taken in sqlite at {place}, which nobody has made yet\n");
    let told = |options: &[&str]| {
        let ended = sandbox.tenure(&[&["step-down", "job"], options].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout
    };
    assert_eq!(told(&[]), never);
    assert_eq!(json(&told(&["--output", "json"]))["never_taken"], true);
    assert_eq!(sandbox.tenure(&["run", "job", "--", "true"]).code, 0);
    assert_eq!(told(&[]), "lease \"job\": nobody holds it\n");
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

/// A holder that has heard of the wish, and ends its work when `go` is there; and who has asked it, with the
/// store moved away since.
fn asked_and_away(sandbox: &Sandbox, wait: &str) -> (Process, Process, StoreAway) {
    let script =
        "trap 'touch asked; while [ ! -e go ]; do sleep 0.05; done; exit' TERM; while :; do sleep 0.05; done";
    let options = [
        "--ttl",
        "10m",
        "--renew",
        "500ms",
        "--grace",
        "4m",
        "--candidate",
        "one",
    ];
    let holder = sandbox.run(&options, "job", script);
    sandbox.until_held("job");
    let asking = sandbox.start(&["step-down", "job", "--wait", wait]);
    eventually(SOON, "it is asked", || sandbox.dir.join("asked").exists());
    (holder, asking, sandbox.move_store_away())
}

#[test]
fn a_store_that_is_away_after_the_wish_is_looked_at_again() {
    let sandbox = Sandbox::new("away-after-wish");
    let (holder, asking, away) = asked_and_away(&sandbox, "5m");
    // Time for looks that fail.
    std::thread::sleep(Duration::from_secs(2));
    away.bring_back();
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&asking), 0, "{:?}", asking.lines());
    assert_eq!(exit_code(&holder), 79);
}

#[test]
fn a_store_that_stays_away_after_the_wish_is_told_with_the_wish() {
    let sandbox = Sandbox::new("gone-after-wish");
    let (_holder, asking, _away) = asked_and_away(&sandbox, "10s");
    // A folder is in its place.
    assert_eq!(exit_code(&asking), 78);
    asking.wait_for_line("was asked to end term", SOON).unwrap();
    asking.wait_for_line("has not answered since", SOON).unwrap();
}
