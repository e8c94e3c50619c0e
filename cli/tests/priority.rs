//! Who takes over: by priority, or by name.

use crate::common::{SOON, Sandbox, exit_code, json};
use tenure_testkit::{Process, eventually};

/// Says when it begins and when it has ended: what of it overlaps is seen in the file.
const WORK: &str =
    r#"trap 'echo end >> "$LOG"; exit 0' TERM; echo begin >> "$LOG"; while :; do sleep 0.05; done"#;

/// Renewed often, so that wishes are heard soon, and long enough that no busy machine costs anybody a term or
/// a place.
const TIMING: [&str; 4] = ["--ttl", "15s", "--renew", "500ms"];

fn candidate(sandbox: &Sandbox, id: &str, options: &[&str]) -> Process {
    let script = format!("LOG={}; {WORK}", sandbox.path("work"));
    let all = [&TIMING[..], &["--candidate", id, "--keep"], options].concat();
    sandbox.run(&all, "job", &script)
}

fn until_waits(sandbox: &Sandbox, id: &str, priority: u16) {
    let place = format!("job/candidates/{priority}/{id}");
    eventually(SOON, "its place", || sandbox.lease(&place)["state"] == "held");
}

fn until_leads(sandbox: &Sandbox, id: &str) {
    eventually(SOON, "the leader", || {
        let lease = sandbox.lease("job");
        lease["state"] == "held" && lease["holder"] == id
    });
}

/// It is named as a place in the queue would be.
#[test]
fn a_lease_of_the_users_with_the_name_of_a_place_holds_nobody_up() {
    let sandbox = Sandbox::new("named-as-a-place");
    let name = "job/candidates/5/eu";
    let holds = [&TIMING[..], &["--candidate", "host-1"]].concat();
    let _holds = sandbox.run(&holds, name, "sleep 300");
    eventually(SOON, "the lease", || sandbox.lease(name)["state"] == "held");
    let waits = [&TIMING[..], &["--candidate", "one", "--priority", "1"]].concat();
    assert_eq!(exit_code(&sandbox.run(&waits, "job", "true")), 0);
    assert!(sandbox.tenure(&["status"]).stdout.contains(name));
    let _leads = candidate(&sandbox, "two", &["--priority", "1"]);
    until_leads(&sandbox, "two");
    for id in ["eu", "host-1"] {
        assert_eq!(sandbox.tenure(&["step-down", "job", "--to", id]).code, 1, "{id}");
    }
    assert_eq!(sandbox.lease(name)["holder"], "host-1");
}

#[test]
fn step_down_hands_over_to_the_candidate_that_is_named_and_no_two_work_at_once() {
    let sandbox = Sandbox::new("by-name");
    let mut candidates = vec![candidate(&sandbox, "one", &["--priority", "5"])];
    until_leads(&sandbox, "one");
    for (id, priority) in [("two", 9), ("three", 1)] {
        candidates.push(candidate(&sandbox, id, &["--priority", &priority.to_string()]));
        until_waits(&sandbox, id, priority);
    }
    for (before, (to, left, priority)) in [
        ("three", "one", 5),
        ("one", "three", 1),
        ("two", "one", 5),
        ("three", "two", 9),
    ]
    .into_iter()
    .enumerate()
    {
        // Else one whose work has not begun yet hands over, and leaves no line.
        eventually(SOON, "its work has begun", || {
            sandbox.read("work").matches("begin").count() == before + 1
        });
        let ended = sandbox.tenure(&[
            "step-down",
            "job",
            "--to",
            to,
            "--wait",
            "30s",
            "--output",
            "json",
        ]);
        assert_eq!(ended.code, 0, "to {to}: {ended:?}");
        let told = json(&ended.stdout);
        assert_eq!(
            (&told["ended"]["holder"], &told["successor"]["holder"]),
            (&left.into(), &to.into())
        );
        until_waits(&sandbox, left, priority);
    }
    // One that has not said so yet may say that it ends.
    eventually(SOON, "the last work has begun", || {
        sandbox.read("work").matches("begin").count() == 5
    });
    for candidate in &candidates {
        candidate.terminate();
        exit_code(candidate);
    }
    let story = sandbox.read("work");
    let lines: Vec<&str> = story.lines().collect();
    assert!(lines.len() >= 8, "{story}");
    assert!(
        lines
            .chunks(2)
            .all(|pair| pair[0] == "begin" && pair.get(1).is_none_or(|end| *end == "end")),
        "{story}"
    );
}

/// Who is called is frozen in its place, and leads only when it is thawed.
#[test]
fn step_down_ends_well_only_when_the_one_who_is_named_leads_though_nobody_held_the_lease() {
    let sandbox = Sandbox::new("by-name-vacant");
    let frozen = |id: &str| {
        let long = [
            "--ttl",
            "10m",
            "--candidate",
            id,
            "--priority",
            "5",
            "--no-history",
        ];
        let waits = sandbox.run(&long, "job", "sleep 300");
        until_waits(&sandbox, id, 5);
        // Nothing is left for it to write: frozen in the middle of that, it would hold the store's file.
        waits.wait_for_line("waiting; held by", SOON).unwrap();
        waits.freeze();
        waits
    };
    let until_vacant = |holder: &Process| {
        holder.terminate();
        exit_code(holder);
        eventually(SOON, "nobody leads", || sandbox.lease("job")["state"] == "vacant");
    };
    let holder = candidate(&sandbox, "one", &["--priority", "5"]);
    until_leads(&sandbox, "one");
    let called = frozen("two");
    until_vacant(&holder);
    let hand_over = sandbox.start(&[
        "step-down",
        "job",
        "--to",
        "two",
        "--output",
        "json",
        "--wait",
        "60s",
    ]);
    eventually(SOON, "it is called", || {
        sandbox.lease("job/candidates/5/two")["asked_to_step_down"] == true
    });
    called.thaw();
    let told = hand_over.wait_for_line("successor", SOON).unwrap().text;
    assert_eq!(exit_code(&hand_over), 0, "{told}");
    let told = json(&told);
    assert!(told["ended"].is_null(), "{told}");
    assert_eq!(told["successor"]["holder"], "two", "{told}");

    let _never_thawed = frozen("three");
    until_vacant(&called);
    let ended = sandbox.tenure(&["step-down", "job", "--to", "three", "--wait", "300ms"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    assert!(
        ended.stderr.contains("three has not taken over after 300ms"),
        "{ended:?}"
    );
}

#[test]
fn the_highest_priority_goes_first_and_zero_never() {
    let sandbox = Sandbox::new("by-priority");
    let holder = candidate(&sandbox, "holder", &["--priority", "3"]);
    until_leads(&sandbox, "holder");
    let mut waiting = Vec::new();
    for (id, priority) in [("low", 1), ("never", 0), ("high", 7)] {
        waiting.push(candidate(&sandbox, id, &["--priority", &priority.to_string()]));
        until_waits(&sandbox, id, priority);
    }
    // A higher priority alone takes nothing from a holder.
    assert_eq!(sandbox.lease("job")["holder"], "holder");
    holder.terminate();
    exit_code(&holder);
    until_leads(&sandbox, "high");
    for gone in [2, 0] {
        waiting[gone].terminate();
        exit_code(&waiting[gone]);
    }
    eventually(SOON, "nobody leads", || sandbox.lease("job")["state"] == "vacant");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(sandbox.lease("job")["state"], "vacant");
}

#[test]
fn a_higher_priority_pre_empts_a_holder_that_was_told_to_let_it() {
    let sandbox = Sandbox::new("preempt");
    let _low = candidate(&sandbox, "low", &["--priority", "1", "--preempt"]);
    until_leads(&sandbox, "low");
    let token = sandbox.lease("job")["token"].clone();
    let _equal = candidate(&sandbox, "equal", &["--priority", "1", "--preempt"]);
    until_waits(&sandbox, "equal", 1);
    // Time for some looks. With one priority for all hosts they would take the lease from each other for
    // ever.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(sandbox.lease("job")["token"], token, "an equal one");
    let _high = candidate(&sandbox, "high", &["--priority", "2", "--preempt"]);
    until_leads(&sandbox, "high");
    until_waits(&sandbox, "low", 1);
    assert_eq!(sandbox.lease("job")["holder"], "high");
}

#[test]
fn a_successor_who_does_not_wait_or_may_not_lead_is_refused_and_nobody_steps_down() {
    let sandbox = Sandbox::new("no-successor");
    let _holder = candidate(&sandbox, "holder", &["--priority", "3"]);
    until_leads(&sandbox, "holder");
    let token = sandbox.lease("job")["token"].clone();
    let refused = |to: &str, why: &str| {
        let ended = sandbox.tenure(&["step-down", "job", "--to", to]);
        assert!(ended.code == 1 && ended.stderr.contains(why), "{ended:?}");
    };
    refused(
        "other",
        "no candidate \"other\" waits in order; nobody does: candidates do with --priority",
    );
    refused("holder", "holder holds it already");
    let _never = candidate(&sandbox, "never", &["--priority", "0"]);
    until_waits(&sandbox, "never", 0);
    refused("never", "has priority 0, and never leads");
    refused("other", "those who do: never (priority 0)");
    assert_eq!(sandbox.lease("job")["token"], token);
    assert_eq!(sandbox.lease("job")["asked_to_step_down"], false);
    for wrong in ["1001", "-1", "high"] {
        let ended = sandbox.tenure(&["run", &format!("--priority={wrong}"), "job", "--", "true"]);
        assert!(
            ended.code == 2 && ended.stderr.contains("from 0 (never) to 1000"),
            "{ended:?}"
        );
    }
}
