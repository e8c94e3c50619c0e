//! Watermarks' files between the commands that use them, services, and root.

use crate::common::{Need, SOON, Sandbox, leave_out_or_fail};
use crate::fence::{fence, refused, term};
use rustix::fs::chown;
use rustix::process::{Gid, Uid, geteuid};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

fn marks_of(sandbox: &Sandbox) -> String {
    format!("file:{}", sandbox.path("marks"))
}

/// Marks in memory: whoever has its turn at a file keeps it for some writes to disk, and the others wait five
/// seconds for theirs, whatever else the disk has to write.
fn marks_in_memory() -> (TempDir, String) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let url = format!("file:{}", folder.path().join("marks").display());
    (folder, url)
}

/// As lines of a crontab that begin with the same minute.
#[test]
fn claims_of_one_file_at_once_all_come_through() {
    let sandbox = Sandbox::new("fence-files-at-once");
    let (_folder, url) = marks_in_memory();
    let claim = |number: usize| {
        let resource = format!("ledger-{number}");
        let claim = [
            "claim", &resource, "--lease", "job", "--token", "7", "--fence", &url,
        ];
        sandbox.start(&[&["fence"], &claim[..]].concat())
    };
    let claims: Vec<_> = (0..16).map(claim).collect();
    for claim in &claims {
        let status = claim.wait_for_exit(SOON).unwrap();
        assert!(status.success(), "{status}: {:?}", claim.lines());
    }
    let shown = fence(&sandbox, &["show", "--fence", &url]);
    assert_eq!(shown.stdout.matches("ledger-").count(), 16, "{shown:?}");
}

/// An old leader keeps asking whether it still leads.
#[test]
fn a_claim_comes_through_beside_stale_checks_that_are_made_again_and_again() {
    let sandbox = Sandbox::new("fence-files-checks");
    let (_folder, url) = marks_in_memory();
    let at = |deed, token: &str| {
        fence(
            &sandbox,
            &[&term(deed, "job", token)[..], &["--fence", &url]].concat(),
        )
    };
    assert_eq!(at("claim", "7").code, 0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    refused(&at("check", "5"), 80, "stale");
                }
            });
        }
        let claims: Vec<_> = (8..16).map(|number| at("claim", &number.to_string())).collect();
        over.store(true, Ordering::SeqCst);
        for claim in claims {
            assert_eq!(claim.code, 0, "{claim:?}");
        }
    });
}

#[test]
fn a_place_of_marks_that_may_not_be_looked_into_is_not_one_without_marks() {
    let sandbox = Sandbox::new("fence-files-closed");
    fs::write(sandbox.path("plain"), "no folder").unwrap();
    for scheme in ["file", "sqlite"] {
        let url = format!("{scheme}:{}", sandbox.path("plain/marks"));
        let at = ["--fence", &url];
        for words in [&["fence", "show"][..], &["status"]] {
            let looked = sandbox.tenure(&[words, &at].concat());
            assert!(
                looked.code != 0 && looked.stderr.contains("plain/marks"),
                "{url}: {looked:?}"
            );
        }
        let checked = fence(&sandbox, &[&term("check", "job", "7")[..], &at].concat());
        assert!(
            checked.code != 81 && checked.stderr.contains("plain/marks"),
            "{url}: {checked:?}"
        );
    }
}

#[test]
fn a_place_of_marks_whose_path_was_left_out_is_not_one_without_marks() {
    let sandbox = Sandbox::new("fence-files-nowhere");
    for words in [&["fence", "show"][..], &["status"], &term("check", "job", "7")] {
        let is_check = words.contains(&"check");
        let words = [
            if is_check { &["fence"][..] } else { &[] },
            words,
            &["--fence", "file:"],
        ]
        .concat();
        let looked = sandbox.tenure(&words);
        assert_eq!(looked.code, 78, "{words:?}: {looked:?}");
        assert!(looked.stderr.contains("is no file"), "{words:?}: {looked:?}");
    }
}

/// Root raises a mark after a restore: the service must still be able to open its file.
#[test]
fn a_file_of_marks_is_still_its_services_after_root_has_raised_one() {
    if !geteuid().is_root() {
        return leave_out_or_fail(Need::Root);
    }
    const SERVICE: u32 = 1_000;
    let sandbox = Sandbox::new("fence-files-root");
    let url = marks_of(&sandbox);
    let bump = || fence(&sandbox, &["bump", "ledger", "--fence", &url]);
    let of_service = |file: &str| {
        let found = sandbox.dir.join(file).metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (SERVICE, SERVICE), "{file}");
    };
    let give = |file: &str| {
        let path = sandbox.dir.join(file);
        chown(path, Some(Uid::from_raw(SERVICE)), Some(Gid::from_raw(SERVICE))).unwrap();
    };
    // The folder's owner, where there are no marks yet; then the marks'.
    give("");
    assert_eq!(bump().code, 0);
    of_service("marks");
    of_service("marks.lock");
    chown(sandbox.dir.path(), Some(Uid::ROOT), Some(Gid::ROOT)).unwrap();
    fs::remove_file(sandbox.path("marks.lock")).unwrap();
    assert_eq!(bump().code, 0);
    of_service("marks");
    of_service("marks.lock");
}
