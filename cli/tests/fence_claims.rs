//! What `tenure fence claim` says of a claim.

use crate::common::{Sandbox, json};
use crate::fence::{fence, refused, term, users_file};

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
        let bumped = at(&["bump", "ledger", "--above", "2000000000000", "--output", "json"]);
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

/// Its lock is a file that is made where it is missing: whoever looks makes none, and keeps no service out meanwhile.
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
