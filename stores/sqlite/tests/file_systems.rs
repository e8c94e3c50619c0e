//! Where store and fence may be, by the file system: real ones, mounted in namespaces of the test's own.

use crate::common::Scratch;
use crate::common::child::{played_after, role};
use std::path::Path;
use tenure_core::{Certainty, Fault, LeaseStore, Leases, StoreError, Verdict};
use tenure_sqlite::{FileSystemTrust, SqliteFence, SqliteOptions, SqliteStore};
use tenure_testkit::served_by_a_program;

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    match role.as_str() {
        "served by a program" => refused_unless_trusted(&file),
        "in a layer" => told_of_a_layer(&file),
        other => panic!("{other}"),
    }
    println!("all is as promised");
}

/// A network file system is refused in the same place, trusted or not: which of them are is told by their
/// numbers.
#[test]
fn a_fence_on_a_file_system_that_a_program_serves_is_refused_unless_it_is_trusted() {
    let scratch = Scratch::new();
    played_after("true", module_path!(), "served by a program", &scratch.file());
}

fn refused_unless_trusted(file: &Path) {
    served_by_a_program(file.parent().unwrap(), file.file_name().unwrap());
    let opened_with = |options: &SqliteOptions| -> [StoreError; 4] {
        [
            options.open().unwrap_err(),
            options.open_fence(Leases::Here).unwrap_err(),
            SqliteFence::find(options, Leases::Here).unwrap_err(),
            SqliteFence::create(options, Leases::Here).unwrap_err(),
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

/// As the root of a container is. Nobody is refused there: the root of a live system is such a one, too.
#[test]
fn a_store_in_a_layer_as_containers_have_is_told_of() {
    let scratch = Scratch::new();
    let directory = scratch.directory().display();
    // A layer of its own on memory: one on a layer is refused by the kernel.
    let set_up = format!(
        "mount -t tmpfs tmpfs '{directory}' && cd '{directory}' && mkdir lower upper work merged && \
         mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr overlay merged"
    );
    let file = scratch.directory().join("merged/leases.db");
    played_after(&set_up, module_path!(), "in a layer", &file);
}

fn told_of_a_layer(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let findings = runtime.block_on(store.examine()).unwrap();
    let found = findings.iter().find(|finding| finding.subject == "file system");
    let found = found.unwrap();
    assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
    assert!(
        found.detail.contains("overlayfs") && found.repair.is_some(),
        "{found:?}"
    );
}
