//! Watermarks' files between the commands that use them, services, and root.

use crate::common::Sandbox;
use crate::fence::{fence, term};

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
