//! How far `tenure fence bump` raises a mark: it never goes down again.

use crate::common::{Sandbox, json};
use crate::fence::{fence, marks, refused, term, users_file};
use std::time::{SystemTime, UNIX_EPOCH};

const HOUR_MS: u128 = 60 * 60 * 1_000;

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// One digit too many would keep every term out for centuries.
#[test]
fn a_bump_above_what_any_term_may_reach_within_a_day_is_refused_and_changes_nothing() {
    let sandbox = Sandbox::new("fence-bumps");
    let (file, watermark) = (users_file(&sandbox), format!("file:{}", sandbox.path("marks")));
    for place in [&[][..], &["--fence", &file], &["--fence", &watermark]] {
        let at = |arguments: &[&str]| fence(&sandbox, &[arguments, place].concat());
        assert_eq!(at(&term("claim", "nightly", "7")).code, 0);
        let before = marks(&sandbox, place);
        for (above, why) in [
            ("17957240000000", "2539-01-16T"),
            ("253402300799999", "9999-12-31T"),
            ("253402300800000", "a whole number from 1 to 253402300799999"),
            ("9223372036854775806", "a whole number from 1 to 253402300799999"),
        ] {
            let slip = at(&["bump", "ledger", "--above", above]);
            refused(&slip, 78, above);
            assert!(slip.stderr.contains(why), "{slip:?}");
        }
        let too_far = (now_ms() + 25 * HOUR_MS).to_string();
        refused(
            &at(&["bump", "ledger", "--above", &too_far]),
            78,
            "check the digits",
        );
        assert_eq!(marks(&sandbox, place), before);

        let above = now_ms() + 23 * HOUR_MS;
        assert_eq!(at(&["bump", "ledger", "--above", &above.to_string()]).code, 0);
        assert_eq!(
            u128::from(marks(&sandbox, place)[0]["mark"].as_u64().unwrap()),
            above + 1
        );
    }
}

/// An operator after a restore: a slip would leave what was meant unprotected, and a mark ahead stops all
/// work.
#[test]
fn a_bump_tells_that_there_was_no_mark_and_until_when_no_term_can_claim() {
    let sandbox = Sandbox::new("fence-bumps-told");
    assert_eq!(fence(&sandbox, &term("claim", "nightly", "7")).code, 0);
    let usual = fence(&sandbox, &["bump", "ledger"]);
    assert_eq!(usual.code, 0, "{usual:?}");
    assert!(
        !usual.stdout.contains("no mark before") && !usual.stdout.contains("this host's clock"),
        "{usual:?}"
    );
    let slip = fence(&sandbox, &["bump", "legder"]);
    assert!(
        slip.code == 0 && slip.stdout.contains("no mark before: check the name"),
        "{slip:?}"
    );
    let again = json(&fence(&sandbox, &["bump", "ledger", "--output", "json"]).stdout);
    assert!(again["before"].is_u64(), "{again}");
    let new = json(&fence(&sandbox, &["bump", "leger", "--output", "json"]).stdout);
    assert!(new["before"].is_null(), "{new}");
    let above = (now_ms() + 2 * HOUR_MS).to_string();
    let ahead = fence(&sandbox, &["bump", "ledger", "--above", &above]);
    assert!(
        ahead.code == 0 && ahead.stdout.contains("none can before 20"),
        "{ahead:?}"
    );
}

/// Of a leases' store whose clock was far ahead once.
#[test]
fn a_bump_above_what_a_lease_has_been_granted_is_done_however_far_that_is() {
    let sandbox = Sandbox::new("fence-bumps-ahead");
    assert_eq!(sandbox.tenure(&["lock", "job", "--", "true"]).code, 0);
    let ahead = now_ms() + 1_000 * HOUR_MS;
    rusqlite::Connection::open(sandbox.path("leases.db"))
        .unwrap()
        .execute(
            "UPDATE lease SET token = ?1 WHERE name = 'job'",
            [i64::try_from(ahead).unwrap()],
        )
        .unwrap();
    let file = users_file(&sandbox);
    let above = (ahead - 1).to_string();
    let bump = ["bump", "ledger", "--fence", &file, "--above", &above];
    refused(&fence(&sandbox, &bump), 78, "--lease NAME");
    let bump = [&bump[..], &["--lease", "job"]].concat();
    let bumped = fence(&sandbox, &bump);
    assert_eq!(bumped.code, 0, "{bumped:?}");
    let mark = marks(&sandbox, &["--fence", &file])[0]["mark"].as_u64();
    assert_eq!(mark.map(u128::from), Some(ahead + 1));
}

/// Else whoever is refused so looks for a term that there never was.
#[test]
fn a_mark_that_was_bumped_is_told_from_one_that_was_claimed() {
    let sandbox = Sandbox::new("fence-bumped");
    let (file, watermark) = (users_file(&sandbox), format!("file:{}", sandbox.path("marks")));
    for place in [&[][..], &["--fence", &file], &["--fence", &watermark]] {
        let at = |arguments: &[&str]| fence(&sandbox, &[arguments, place].concat());
        let shown = || at(&["show"]).stdout;
        assert_eq!(at(&term("claim", "nightly", "7")).code, 0);
        assert!(!shown().contains("bumped"), "{}", shown());
        assert_eq!(at(&["bump", "ledger", "--above", "1000"]).code, 0);
        assert!(shown().contains("1001 (bumped)"), "{}", shown());
        let status = sandbox.tenure(&[&["status"], place].concat()).stdout;
        assert!(status.contains("1001 (bumped)"), "{status}");
        assert_eq!(marks(&sandbox, place)[0]["bumped"], true);
        for deed in ["claim", "check"] {
            refused(
                &at(&term(deed, "nightly", "9")),
                80,
                "an operator has raised the mark",
            );
        }
        assert_eq!(at(&term("claim", "nightly", "1002")).code, 0);
        assert_eq!(marks(&sandbox, place)[0]["bumped"], false);
        let late = at(&term("claim", "nightly", "9"));
        refused(&late, 80, "none below 1002");
        assert!(!late.stderr.contains("operator"), "{late:?}");
    }
}
