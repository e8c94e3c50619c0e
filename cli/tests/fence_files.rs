//! Watermarks' files between the commands that use them, services, and root.

use crate::common::{Need, Sandbox, leave_out_or_fail};
use crate::fence::{fence, term};
use rustix::fs::chown;
use rustix::process::{Gid, Uid, geteuid};
use std::os::unix::fs::MetadataExt as _;

fn marks_of(sandbox: &Sandbox) -> String {
    format!("file:{}", sandbox.path("marks"))
}

#[test]
fn a_place_of_marks_that_may_not_be_looked_into_is_not_one_without_marks() {
    let sandbox = Sandbox::new("fence-files-closed");
    std::fs::write(sandbox.path("plain"), "no folder").unwrap();
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
    std::fs::remove_file(sandbox.path("marks.lock")).unwrap();
    assert_eq!(bump().code, 0);
    of_service("marks");
    of_service("marks.lock");
}
