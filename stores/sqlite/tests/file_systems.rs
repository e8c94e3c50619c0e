//! Where store and fence may be, by the file system: real ones, mounted in namespaces of the test's own.

use crate::common::Scratch;
use crate::common::child::{NAMESPACES_NEEDED, in_role_after, role};
use crate::common::fuse::served_by_a_program;
use std::path::Path;
use tenure_core::{Certainty, Fault, FenceError, StoreError};
use tenure_sqlite::{FileSystemTrust, SqliteFence, SqliteOptions};

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    match role.as_str() {
        "served by a program" => refused_unless_trusted(&file),
        other => panic!("{other}"),
    }
    println!("all is as promised");
}

fn played_after(set_up: &str, role: &str, file: &Path) {
    let output = in_role_after(set_up, module_path!(), role, file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("all is as promised"),
        "{role}: {said}{}\n{NAMESPACES_NEEDED}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A network file system is refused in the same place, trusted or not: which of them are is told by their numbers.
#[test]
fn a_fence_on_a_file_system_that_a_program_serves_is_refused_unless_it_is_trusted() {
    let scratch = Scratch::new();
    played_after("true", "served by a program", &scratch.file());
}

fn refused_unless_trusted(file: &Path) {
    served_by_a_program(file.parent().unwrap(), file.file_name().unwrap());
    let told = |error| match error {
        FenceError::Store(error) => error,
        other => panic!("{other}"),
    };
    let opened_with = |options: &SqliteOptions| -> [StoreError; 4] {
        [
            options.open().unwrap_err(),
            told(options.open_fence().unwrap_err()),
            told(SqliteFence::find(options).unwrap_err()),
            told(SqliteFence::create(options).unwrap_err()),
        ]
    };
    for error in opened_with(&SqliteOptions::new(file)) {
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Unsupported, Certainty::NotApplied),
            "{error}"
        );
        assert!(
            error.message.contains("FUSE") && error.message.contains("filesystem=trusted"),
            "{error}"
        );
    }
    // This one opens no files, which SQLite says.
    for error in opened_with(&SqliteOptions::new(file).trust(FileSystemTrust::Trusted)) {
        assert!(!error.message.contains("FUSE"), "{error}");
    }
}
