//! A file that several users share, by a group and a umask.

use crate::common::child::{in_role, role};
use crate::common::{Asker, Scratch, grant};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use tenure_core::{Interest, LeaseStore, Scope};
use tenure_sqlite::SqliteStore;

#[test]
fn as_a_child() {
    let Some((_role, file)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&file).unwrap();
        let _watch = store
            .watch(&Scope::Prefix(String::new()), Interest::Everything)
            .await
            .unwrap();
        let _granted = grant(&store, &Asker::new("first"), "job").await;
        for beside in ["", "-wal", "-shm", "-wake"] {
            let path = format!("{}{beside}", file.display());
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            println!("leases.db{beside} has {mode:o}");
        }
    });
}

/// SQLite by itself lets nobody but the owner write what it makes, whatever the umask.
#[test]
fn a_new_file_and_all_that_stands_beside_it_are_for_whom_the_umask_lets_in() {
    for (umask, mode) in [("002", "664"), ("022", "644"), ("077", "600")] {
        let scratch = Scratch::new();
        let child = in_role(module_path!(), "makes it", &scratch.file());
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("umask {umask} && exec \"$0\" \"$@\""))
            .arg(child.get_program())
            .args(child.get_args());
        for (name, value) in child.get_envs() {
            command.env(name, value.unwrap());
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        for beside in ["", "-wal", "-shm", "-wake"] {
            let line = format!("leases.db{beside} has {mode}\n");
            assert!(said.contains(&line), "umask {umask}: {said}");
        }
    }
}
