//! What `tenure fence claim` says of a claim.

use crate::common::{Sandbox, json};
use crate::fence::{fence, marks, refused, term, users_file};

/// The mark is at the term's number by then, but nobody has claimed it.
#[test]
fn a_claim_of_a_bumped_mark_by_its_own_number_is_a_new_one_once() {
    let sandbox = Sandbox::new("fence-claims");
    let (file, watermark) = (users_file(&sandbox), format!("file:{}", sandbox.path("marks")));
    for place in [&[][..], &["--fence", &file], &["--fence", &watermark]] {
        let at = |arguments: &[&str]| fence(&sandbox, &[arguments, place].concat());
        let claim = |token: &str| {
            let claimed = at(&term("claim", "nightly", token));
            assert_eq!(claimed.code, 0, "{place:?}: {claimed:?}");
            let said = claimed.stdout.strip_prefix("resource \"ledger\": ");
            said.unwrap_or_else(|| panic!("{claimed:?}")).to_owned()
        };
        assert_eq!(claim("7"), "term 7 of \"nightly\" has claimed it, as the first\n");
        assert_eq!(claim("7"), "term 7 of \"nightly\" had claimed it already\n");
        assert_eq!(claim("8"), "term 8 of \"nightly\" has claimed it, after term 7\n");
        let bumped = at(&["bump", "ledger", "--above", "1000", "--output", "json"]);
        let mark = json(&bumped.stdout)["mark"].to_string();
        let is = format!("term {mark} of \"nightly\"");
        assert_eq!(
            claim(&mark),
            format!("{is} has claimed it, where its mark was bumped to\n"),
            "{place:?}"
        );
        assert_eq!(
            claim(&mark),
            format!("{is} had claimed it already\n"),
            "{place:?}"
        );
    }
}

/// Cron mails what a script prints, every night.
#[test]
fn a_quiet_claim_or_check_that_is_admitted_prints_nothing() {
    let sandbox = Sandbox::new("fence-quiet");
    for (deed, token, code) in [
        ("claim", "7", 0),
        ("claim", "7", 0),
        ("check", "7", 0),
        ("check", "6", 80),
    ] {
        let said = fence(
            &sandbox,
            &[&["--quiet"], &term(deed, "nightly", token)[..]].concat(),
        );
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{said:?}");
        assert_eq!(said.stderr.is_empty(), code == 0, "{said:?}");
    }
}

/// More than are read at once.
#[test]
fn thousands_of_marks_are_all_shown() {
    let sandbox = Sandbox::new("fence-thousands");
    let url = users_file(&sandbox);
    let at = ["--fence", &url];
    let claimed = fence(&sandbox, &[&term("claim", "nightly", "7")[..], &at].concat());
    assert_eq!(claimed.code, 0, "{claimed:?}");
    let file = rusqlite::Connection::open(sandbox.path("ledger.db")).unwrap();
    file.execute_batch("BEGIN; CREATE TEMP TABLE copy AS SELECT * FROM tenure_fence")
        .unwrap();
    for number in 1..2_500 {
        let copied = format!(
            "UPDATE copy SET resource = 'ledger/{number}'; INSERT INTO tenure_fence SELECT * FROM copy"
        );
        file.execute_batch(&copied).unwrap();
    }
    file.execute_batch("COMMIT").unwrap();
    assert_eq!(marks(&sandbox, &at).as_array().unwrap().len(), 2_500);
}

/// What scripts read.
#[test]
fn claims_checks_and_guards_are_told_in_json_where_that_is_asked_for() {
    let sandbox = Sandbox::new("fence-json");
    let url = users_file(&sandbox);
    rusqlite::Connection::open(sandbox.path("ledger.db"))
        .unwrap()
        .execute_batch("ALTER TABLE x ADD COLUMN fence INTEGER")
        .unwrap();
    let at = |arguments: &[&str]| {
        let told = fence(
            &sandbox,
            &[arguments, &["--fence", &url, "--output", "json"]].concat(),
        );
        assert_eq!(told.code, 0, "{told:?}");
        json(&told.stdout)
    };
    let admitted =
        serde_json::json!({"resource": "ledger", "lease": "nightly", "token": 7, "admitted": true});
    for deed in ["claim", "check"] {
        assert_eq!(at(&term(deed, "nightly", "7")), admitted, "{deed}");
    }
    assert_eq!(
        at(&["guard", "ledger", "--table", "x"]),
        serde_json::json!({"table": "x", "column": "fence", "resource": "ledger", "guarded": true})
    );
    assert_eq!(
        at(&["unguard", "--table", "x"]),
        serde_json::json!({"table": "x", "guarded": false})
    );
    let told = sandbox.tenure(&["store", "init", "--output", "json"]);
    let location = json(&sandbox.tenure(&["status", "--output", "json"]).stdout)["store"].clone();
    assert_eq!(
        json(&told.stdout),
        serde_json::json!({"store": location, "ready": true}),
        "{told:?}"
    );
}

/// Its lock is a file that is made where it is missing: whoever looks makes none, and keeps no service out
/// meanwhile.
#[test]
fn who_looks_at_a_watermark_locks_nothing_and_who_checks_counts() {
    let sandbox = Sandbox::new("fence-looks");
    let url = format!("file:{}", sandbox.path("marks"));
    let at = ["--fence", &url];
    let claimed = fence(&sandbox, &[&term("claim", "nightly", "7")[..], &at].concat());
    assert_eq!(claimed.code, 0, "{claimed:?}");
    let locks = || {
        let files = std::fs::read_dir(sandbox.dir.path()).unwrap().flatten();
        let names = files.map(|file| file.file_name().into_string().unwrap());
        names
            .filter(|name| name != "marks" && name.contains("marks"))
            .collect::<Vec<_>>()
    };
    let made = locks();
    assert!(!made.is_empty(), "a claim locks");
    for lock in made {
        std::fs::remove_file(sandbox.dir.join(&lock)).unwrap();
    }
    for words in [&["fence", "show", "ledger"][..], &["fence", "show"], &["status"]] {
        let looked = sandbox.tenure(&[words, &at].concat());
        assert_eq!(looked.code, 0, "{looked:?}");
        assert_eq!(locks(), Vec::<String>::new(), "{words:?}");
    }
    refused(
        &fence(&sandbox, &[&term("check", "nightly", "5")[..], &at].concat()),
        80,
        "stale",
    );
    let shown = fence(&sandbox, &[&["show", "--output", "json"][..], &at].concat());
    assert_eq!(json(&shown.stdout)["fences"][0]["refused"], 1, "{shown:?}");
}

/// Believed once, it would refuse every real term after it.
#[test]
fn what_is_above_every_token_is_claimed_checked_and_bumped_by_nobody() {
    let sandbox = Sandbox::new("fence-beyond");
    let (file, watermark) = (users_file(&sandbox), format!("file:{}", sandbox.path("marks")));
    for place in [&[][..], &["--fence", &file], &["--fence", &watermark]] {
        let at = |arguments: &[&str]| fence(&sandbox, &[arguments, place].concat());
        assert_eq!(at(&term("claim", "nightly", "7")).code, 0);
        let before = marks(&sandbox, place);
        for beyond in ["253402300800000", "9223372036854775807", "18446744073709551615"] {
            for asked in [
                &term("claim", "nightly", beyond)[..],
                &term("check", "nightly", beyond),
                &["bump", "ledger", "--above", beyond],
            ] {
                refused(&at(asked), 78, "a whole number from 1 to 253402300799999");
            }
        }
        assert_eq!(marks(&sandbox, place), before);
        // The last one is a token, of the future.
        refused(
            &at(&term("claim", "nightly", "253402300799999")),
            78,
            "from the future",
        );
        refused(
            &at(&["bump", "ledger", "--above", "253402300799999"]),
            78,
            "check the digits",
        );
    }
}
