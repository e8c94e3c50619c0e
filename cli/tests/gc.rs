//! Cleaning up what nobody uses.

use crate::common::{Sandbox, json};

/// Makes every record look as if it had been used last that long ago.
fn age(sandbox: &Sandbox) {
    let file = rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap();
    file.execute(
        "UPDATE lease SET last_renewed_at = '2020-01-01T00:00:00.000Z', token = 1577836800000",
        [],
    )
    .unwrap();
}

/// A store in which three names were used long ago, one of them is held again, and one was used today.
fn used() -> (Sandbox, tenure_testkit::Process) {
    let sandbox = Sandbox::new("gc");
    for name in ["orders/1", "orders/2", "nightly"] {
        let ended = sandbox.tenure(&["run", "--no-history", name, "--", "true"]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    age(&sandbox);
    // Its renewal, which will find another token, is far away.
    let holder = sandbox.run(&["--no-history", "--ttl", "1h"], "orders/2", "sleep 300");
    sandbox.until_held("orders/2");
    age(&sandbox);
    assert_eq!(
        sandbox
            .tenure(&["run", "--no-history", "young", "--", "true"])
            .code,
        0
    );
    (sandbox, holder)
}

#[test]
fn gc_removes_what_nobody_uses_and_its_next_token_is_greater() {
    let (sandbox, _holder) = used();
    let before = sandbox.lease("orders/1")["token"].as_u64();
    let cleaned = sandbox.tenure(&["gc", "--output", "json"]);
    assert_eq!(cleaned.code, 0, "{cleaned:?}");
    let told = json(&cleaned.stdout);
    assert_eq!(
        (told["unused"].as_u64(), told["removed"].as_u64()),
        (Some(2), Some(2))
    );
    let left = json(&sandbox.tenure(&["status", "--output", "json"]).stdout);
    let names: Vec<&str> = left["leases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lease| lease["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["orders/2", "young"],
        "what is held, and what was used today"
    );
    assert_eq!(
        sandbox
            .tenure(&["run", "--no-history", "orders/1", "--", "true"])
            .code,
        0
    );
    assert!(sandbox.lease("orders/1")["token"].as_u64() > before);
    let again = sandbox.tenure(&["gc"]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (0, "0 unused records removed\n")
    );
}

#[test]
fn a_dry_run_says_which_and_removes_nothing() {
    let (sandbox, _holder) = used();
    let looked = sandbox.tenure(&["gc", "--dry-run"]);
    assert_eq!((looked.code, looked.stdout.as_str()), (0, "nightly\norders/1\n"));
    assert!(
        looked.stderr.contains("2 unused records; nothing was removed"),
        "{looked:?}"
    );
    let only_orders = sandbox.tenure(&["gc", "--dry-run", "--prefix", "orders/", "--output", "json"]);
    assert_eq!(json(&only_orders.stdout)["name"], "orders/1");
    let removed = sandbox.tenure(&["gc"]);
    assert_eq!(
        removed.stdout, "2 unused records removed\n",
        "they were still there"
    );
}

/// More than are read at once.
#[test]
fn thousands_of_names_are_all_shown_and_all_cleaned_up() {
    let sandbox = Sandbox::new("gc-thousands");
    let run = sandbox.tenure(&["run", "--no-history", "orders/0", "--", "true"]);
    assert_eq!(run.code, 0, "{run:?}");
    let file = rusqlite::Connection::open(sandbox.dir.join("leases.db")).unwrap();
    file.execute_batch("BEGIN; CREATE TEMP TABLE copy AS SELECT * FROM lease")
        .unwrap();
    for number in 1..2_500 {
        let copied =
            format!("UPDATE copy SET name = 'orders/{number}'; INSERT INTO lease SELECT * FROM copy");
        file.execute_batch(&copied).unwrap();
    }
    file.execute_batch("COMMIT").unwrap();
    drop(file);
    age(&sandbox);
    let shown = json(&sandbox.tenure(&["status", "--output", "json"]).stdout);
    assert_eq!(shown["leases"].as_array().unwrap().len(), 2_500);
    let cleaned = sandbox.tenure(&["gc", "--output", "json"]);
    let all = serde_json::json!({"unused": 2_500, "removed": 2_500});
    assert_eq!(json(&cleaned.stdout), all, "{cleaned:?}");
}

/// Cron mails what is printed, every day.
#[test]
fn a_quiet_gc_prints_nothing() {
    let (sandbox, _holder) = used();
    let removed = sandbox.tenure(&["gc", "--quiet"]);
    assert_eq!(
        (removed.code, removed.stdout.as_str(), removed.stderr.as_str()),
        (0, "", "")
    );
    let looked = sandbox.tenure(&["gc", "--dry-run"]);
    assert_eq!(looked.stdout, "", "they are gone: {looked:?}");
}

#[test]
fn what_was_used_within_a_day_cannot_be_asked_for() {
    let sandbox = Sandbox::new("gc-soon");
    let refused = sandbox.tenure(&["gc", "--unused-for", "12h"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("write 1d or more"), "{refused:?}");
}
