//! Who led when, and how it ended, can be read afterwards.

use crate::common::{SOON, Sandbox, exit_code, json};
use serde_json::Value;
use tenure_testkit::eventually;

fn terms(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let told = sandbox.tenure(&["history", name, "--output", "json"]);
    assert_eq!(told.code, 0, "{told:?}");
    json(&told.stdout)["terms"].as_array().unwrap().clone()
}

/// Tries of what needs each end to be noted: one that the store takes longer than a second for is left out,
/// as on a busy disk.
const TRIES_MAX: u32 = 4;

/// Terms for it, at most.
const TERMS_MAX: u32 = 60;

/// Has terms of the lease run until what is kept of them is as wished, so many at least.
fn terms_until(sandbox: &Sandbox, least: u32, options: &[&str], is_wished: impl Fn(&[Value]) -> bool) {
    for number in 1..=TERMS_MAX {
        let run = [&["run"], options, &["job", "--", "true"]].concat();
        assert_eq!(sandbox.tenure(&run).code, 0);
        if number >= least && is_wished(&terms(sandbox, "job")) {
            return;
        }
    }
    panic!("after {TERMS_MAX} terms: {:?}", terms(sandbox, "job"));
}

#[test]
fn history_tells_how_each_term_ended_and_which_one_leads() {
    let are_noted = (0..TRIES_MAX).any(|_| story_is_told());
    assert!(are_noted, "an end was left out in each of {TRIES_MAX} tries");
}

/// Whether all ends were noted.
fn story_is_told() -> bool {
    let sandbox = Sandbox::new("history");
    let quick = ["--ttl", "15s", "--renew", "500ms", "--candidate"];
    let run =
        |candidate: &str, script: &str| sandbox.run(&[&quick[..], &[candidate]].concat(), "job", script);
    let first = run("first", "while [ ! -e go ]; do sleep 0.05; done; exit 7");
    eventually(SOON, "its note", || terms(&sandbox, "job").len() == 1);
    std::fs::write(sandbox.dir.join("go"), "").unwrap();
    assert_eq!(exit_code(&first), 7);
    let killed = run("second", "sleep 300");
    eventually(SOON, "its note", || terms(&sandbox, "job").len() == 2);
    killed.kill_leader();
    killed.wait_for_exit(SOON).unwrap();
    let asked = run("third", "sleep 300");
    eventually(SOON, "its note", || terms(&sandbox, "job").len() == 3);
    assert_eq!(sandbox.tenure(&["step-down", "job", "--wait", "30s"]).code, 0);
    assert_eq!(exit_code(&asked), 79);
    let _leads = run("fourth", "sleep 300");
    eventually(SOON, "its note", || terms(&sandbox, "job").len() == 4);
    let terms = terms(&sandbox, "job");
    let tokens: Vec<u64> = terms.iter().map(|term| term["token"].as_u64().unwrap()).collect();
    assert!(
        tokens.windows(2).all(|pair| pair[0] > pair[1]),
        "the latest first: {tokens:?}"
    );
    assert_eq!(tokens[0], sandbox.lease("job")["token"].as_u64().unwrap());
    let holders: Vec<&str> = terms
        .iter()
        .map(|term| term["holder"].as_str().unwrap())
        .collect();
    assert_eq!(holders, ["fourth", "third", "second", "first"]);
    assert_eq!(
        (&terms[0]["leads"], &terms[0]["end"]),
        (&true.into(), &Value::Null)
    );
    if terms[1]["end"].is_null() || terms[3]["end"].is_null() {
        return false;
    }
    assert_eq!(terms[1]["end"], "handed over: asked to step down");
    assert_eq!(
        (&terms[2]["leads"], &terms[2]["end"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(
        terms[3]["end"],
        "given back: the command ended with exit status: 7"
    );
    let codes: Vec<Option<u64>> = terms.iter().map(|term| term["exit_code"].as_u64()).collect();
    assert_eq!(codes, [None, None, None, Some(7)]);
    let left: Vec<Option<u64>> = terms.iter().map(|term| term["left"].as_u64()).collect();
    assert_eq!(left, [None, None, None, Some(0)]);
    let shown = sandbox.tenure(&["history", "job"]).stdout;
    for expected in [
        "TOKEN",
        "leads",
        "asked to step down",
        "no word: killed, or cut off",
        "exit status: 7",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
    // What is kept is not taken for leases of the user's.
    assert!(!sandbox.tenure(&["status"]).stdout.contains("job/terms"));
    assert!(
        sandbox
            .tenure(&["status", "--all"])
            .stdout
            .contains("job/terms/03")
    );
    true
}

#[test]
fn twenty_terms_are_kept_the_oldest_goes_first() {
    let sandbox = Sandbox::new("history-bound");
    terms_until(&sandbox, 23, &[], |kept| {
        let last = &sandbox.lease("job")["token"];
        kept.len() >= 20 && &kept[0]["token"] == last && kept.iter().all(|term| !term["end"].is_null())
    });
    let kept = terms(&sandbox, "job");
    assert_eq!(kept.len(), 20);
    let status = json(&sandbox.tenure(&["status", "--all", "--output", "json"]).stdout);
    let records = status["leases"].as_array().unwrap();
    // Whoever writes one late finds it expired by then, and leaves it so.
    assert!(
        records.iter().all(|lease| lease["state"] != "held"),
        "{records:?}"
    );
    assert_eq!(records.len(), 21);
    assert_eq!(sandbox.lease("job")["token"], kept[0]["token"]);
}

/// Whoever has a lease below the name of another finds it as it was.
#[test]
fn leases_of_the_users_below_a_name_are_neither_hidden_nor_used() {
    let sandbox = Sandbox::new("history-below");
    let run = |name: &str, options: &[&str]| {
        let all = [&["run"], options, &[name, "--", "true"]].concat();
        assert_eq!(sandbox.tenure(&all).code, 0);
    };
    let names = [
        "job/terms/mine",
        "job/terms/07",
        "job/candidates/mine",
        "job/candidates/5/eu",
    ];
    let before = names.map(|name| {
        run(name, &["--no-history"]);
        sandbox.lease(name)["token"].clone()
    });
    // All slots but the user's.
    terms_until(&sandbox, 22, &["--priority", "1"], |kept| kept.len() >= 19);
    assert_eq!(terms(&sandbox, "job").len(), 19);
    assert_eq!(names.map(|name| sandbox.lease(name)["token"].clone()), before);
    let shown = sandbox.tenure(&["status"]).stdout;
    for name in names {
        assert!(shown.contains(name), "{shown}");
    }
    assert!(!shown.contains("job/terms/00"), "{shown}");
}

#[test]
fn nothing_is_kept_where_it_is_not_wanted_and_locks_keep_none() {
    let sandbox = Sandbox::new("no-history");
    assert_eq!(
        sandbox.tenure(&["run", "--no-history", "job", "--", "true"]).code,
        0
    );
    assert_eq!(sandbox.tenure(&["lock", "part", "--", "true"]).code, 0);
    let status = json(&sandbox.tenure(&["status", "--all", "--output", "json"]).stdout);
    let names: Vec<&str> = status["leases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lease| lease["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["job", "part"]);
    let told = sandbox.tenure(&["history", "job"]);
    let place = sandbox.path("leases.db");
    let nothing = format!("lease \"job\": no term is noted in sqlite at {place} (");
    assert!(told.stdout.starts_with(&nothing), "{told:?}");
}

#[test]
fn a_record_of_a_term_that_cannot_be_understood_is_told_and_ends_no_history() {
    let sandbox = Sandbox::new("damaged-term");
    terms_until(&sandbox, 3, &[], |terms| terms.len() == 3);
    // The first slot: the one that a history would use first, if it took it for one that was never used.
    rusqlite::Connection::open(sandbox.path("leases.db"))
        .unwrap()
        .execute(
            "UPDATE lease SET acquired_ns = -5 WHERE name = 'job/terms/00'",
            [],
        )
        .unwrap();
    for number in 3..=TERMS_MAX {
        assert_eq!(
            sandbox.tenure(&["run", "job", "--", "sh", "-c", "exit 9"]).code,
            9
        );
        let told = sandbox.tenure(&["history", "job", "--output", "json"]);
        assert_eq!(told.code, 65, "{told:?}");
        assert!(told.stderr.contains("job/terms/00"), "{told:?}");
        let terms = json(&told.stdout)["terms"].as_array().unwrap().clone();
        if terms.len() >= 4 && terms[0]["exit_code"] == 9 && terms[1]["exit_code"] == 9 {
            return;
        }
        assert!(number < TERMS_MAX, "no later term is noted: {terms:?}");
    }
}

/// Its warden has given the lease back, and it had no time to say how it ended: whether it will is not known
/// yet.
#[test]
fn a_term_that_was_just_given_back_has_no_word_yet() {
    let sandbox = Sandbox::new("no-word-yet");
    let killed = sandbox.run(&["--ttl", "10m"], "job", "echo works; sleep 300");
    killed.wait_for_line("works", SOON).unwrap();
    eventually(SOON, "its note", || terms(&sandbox, "job").len() == 1);
    killed.kill_leader();
    eventually(SOON, "it is given back", || {
        sandbox.lease("job")["state"] == "vacant"
    });
    let shown = sandbox.tenure(&["history", "job"]).stdout;
    assert!(shown.contains("no word yet"), "{shown}");
    assert_eq!(terms(&sandbox, "job")[0]["leads"], false);
    // Another term has begun since: it will say nothing any more.
    let _leads = sandbox.run(&["--ttl", "10m"], "job", "sleep 300");
    eventually(SOON, "its note", || terms(&sandbox, "job").len() == 2);
    let shown = sandbox.tenure(&["history", "job"]).stdout;
    assert!(shown.contains("no word: killed, or cut off"), "{shown}");
}
