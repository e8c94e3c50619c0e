//! One file that is reached by several paths. SQLite's log lies beside the path, so by each of them another
//! one would lead.

use crate::common::child::{played_after, role};
use crate::common::{Asker, Scratch, grant, held, name};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tenure_core::{Certainty, Fault, Interest, LeaseStore, Leases, Renewed, Scope, StoreError, Verdict};
use tenure_sqlite::{SqliteFence, SqliteOptions, SqliteStore};

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let play = async {
        match role.as_str() {
            "at a mounted file" => {
                is_a_mount(&SqliteStore::open(&file).unwrap_err());
                is_a_mount(&fence_refused(&file));
            }
            "in a mounted directory" => {
                let store = SqliteStore::open(&file).unwrap();
                let _first = held(&store, &Asker::new("second"), "job").await;
                drop(SqliteFence::create(&SqliteOptions::new(&file), Leases::Here).unwrap());
            }
            "mounted over" => mounted_over(&file).await,
            other => panic!("{other}"),
        }
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(play);
    println!("all is as promised");
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn mount_over(file: &Path, mounted: &Path) {
    run(Command::new("mount").arg("--bind").args([mounted, file]));
}

fn is_refused(error: &StoreError, why: &str, way_out: &str) {
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unsupported, Certainty::NotApplied),
        "{error}"
    );
    for part in [why, "SQLite keeps its log beside the path", way_out, "leases.db"] {
        assert!(error.message.contains(part), "{part} is not in: {error}");
    }
    assert!(!error.message.contains('\n'), "{error}");
}

fn is_linked(error: &StoreError) {
    is_refused(error, "one of 2 hard links", "remove the other links");
}

fn is_a_mount(error: &StoreError) {
    is_refused(error, "is itself a mount", "mount the directory");
}

fn fence_refused(file: &Path) -> StoreError {
    let options = SqliteOptions::new(file);
    let errors = [
        SqliteFence::new(file, Leases::Here).unwrap_err(),
        SqliteFence::find(&options, Leases::Here).unwrap_err(),
        SqliteFence::create(&options, Leases::Here).unwrap_err(),
    ];
    let [first, others @ ..] = errors;
    assert!(others.iter().all(|error| *error == first), "{others:?}");
    first
}

/// Two directories: in the first one the store, in the second one nothing yet. The paths of the file in each.
fn two_directories(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let [own, other] = ["own", "other"].map(|part| {
        let directory = scratch.directory().join(part);
        fs::create_dir(&directory).unwrap();
        directory.join("leases.db")
    });
    (own, other)
}

#[test]
fn a_file_with_a_second_name_is_refused_by_either() {
    let scratch = Scratch::new();
    let (own, other) = two_directories(&scratch);
    drop(SqliteStore::open(&own).unwrap());
    fs::hard_link(&own, &other).unwrap();
    for path in [&own, &other] {
        is_linked(&SqliteStore::open(path).unwrap_err());
    }
    // Not even a log was begun beside the second name.
    assert_eq!(fs::read_dir(other.parent().unwrap()).unwrap().count(), 1);
    fs::remove_file(&other).unwrap();
    drop(SqliteStore::open(&own).unwrap());
}

/// Its term ends at the deadline unless the second name goes before: nobody leads by it meanwhile.
#[tokio::test]
async fn a_holder_whose_file_gets_a_second_name_is_told_at_its_next_call() {
    let scratch = Scratch::new();
    let (own, other) = two_directories(&scratch);
    let store = SqliteStore::open(&own).unwrap();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    fs::hard_link(&own, &other).unwrap();
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    is_linked(renewed[0].as_ref().unwrap_err());
    is_linked(&store.acquire(&asker.acquire("another")).await.unwrap_err());
    is_linked(&store.get(&name("job")).await.unwrap_err());
    let released = store.release(&[asker.release("job", first.token)]).await;
    is_linked(released[0].as_ref().unwrap_err());
    is_linked(&SqliteStore::open(&other).unwrap_err());
    // The second name may go again: that is no reason never to watch the file.
    let watched = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .map(drop)
        .unwrap_err();
    assert_eq!(watched.fault, Fault::Unreachable, "{watched}");
    fs::remove_file(&other).unwrap();
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Extended { .. })]),
        "{renewed:?}"
    );
}

/// As a deployment switches `current` from one release to the next: whoever starts then elects in the other
/// one's file.
#[tokio::test]
async fn a_holder_whose_link_leads_to_another_file_is_told_at_its_next_call() {
    let scratch = Scratch::new();
    let (_own, _other) = two_directories(&scratch);
    let current = scratch.directory().join("current");
    let switch = |to: &str| {
        let next = scratch.directory().join("next");
        symlink(to, &next).unwrap();
        fs::rename(next, &current).unwrap();
    };
    switch("own");
    let file = current.join("leases.db");
    let store = SqliteStore::open(&file).unwrap();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    let mut watch = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    switch("other");
    let second = SqliteStore::open(&file).unwrap();
    let _second = grant(&second, &Asker::new("second"), "job").await;
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    let told = [
        renewed[0].as_ref().unwrap_err(),
        &store.acquire(&asker.acquire("another")).await.unwrap_err(),
        &store.get(&name("job")).await.unwrap_err(),
        &watch.next().await.unwrap_err(),
    ];
    for error in told {
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Unreachable, Certainty::NotApplied),
            "{error}"
        );
        for part in ["current/leases.db", "own/leases.db", "other/leases.db", "restart"] {
            assert!(error.message.contains(part), "{part} is not in: {error}");
        }
    }
    switch("own");
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Extended { .. })]),
        "{renewed:?}"
    );
}

#[tokio::test]
async fn the_doctor_names_the_second_name_of_a_file() {
    let scratch = Scratch::new();
    let (own, other) = two_directories(&scratch);
    let store = SqliteStore::open(&own).unwrap();
    fs::hard_link(&own, &other).unwrap();
    let findings = store.examine().await.unwrap();
    let found = findings.iter().find(|finding| finding.subject == "file system");
    let found = found.unwrap();
    assert_eq!(found.verdict, Verdict::Bad);
    let refusal = SqliteStore::open(&own).unwrap_err();
    assert_eq!(found.detail, refusal.message);
}

#[test]
fn a_fence_in_a_file_with_a_second_name_is_refused() {
    let scratch = Scratch::new();
    let (own, other) = two_directories(&scratch);
    SqliteFence::install(&Connection::open(&own).unwrap()).unwrap();
    fs::hard_link(&own, &other).unwrap();
    for path in [&own, &other] {
        is_linked(&fence_refused(path));
    }
}

/// As containers do it: `docker -v FILE:FILE`, Kubernetes' subPath.
#[tokio::test]
async fn a_mounted_file_is_refused_and_one_in_a_mounted_directory_is_not() {
    let scratch = Scratch::new();
    let (own, other) = two_directories(&scratch);
    let store = SqliteStore::open(&own).unwrap();
    let _first = grant(&store, &Asker::new("first"), "job").await;
    fs::write(&other, "").unwrap();
    let bind = |from: &Path, to: &Path| format!("mount --bind '{}' '{}'", from.display(), to.display());
    let file = bind(&own, &other);
    played_after(&file, module_path!(), "at a mounted file", &other);
    // As `docker -v FILE:FILE:ro`: permissions are not what is to be mended.
    let read_only = format!("{file} && mount -o remount,bind,ro '{}'", other.display());
    played_after(&read_only, module_path!(), "at a mounted file", &other);
    let directories = bind(own.parent().unwrap(), other.parent().unwrap());
    played_after(&directories, module_path!(), "in a mounted directory", &other);
}

#[test]
fn a_file_that_is_mounted_over_an_open_one_is_refused() {
    let scratch = Scratch::new();
    let (own, other) = two_directories(&scratch);
    drop(SqliteStore::open(&other).unwrap());
    played_after("true", module_path!(), "mounted over", &own);
}

async fn mounted_over(file: &Path) {
    let other = file.parent().unwrap().with_file_name("other").join("leases.db");
    let store = SqliteStore::open(file).unwrap();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    mount_over(file, &other);
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    is_a_mount(renewed[0].as_ref().unwrap_err());
    run(Command::new("umount").arg(file));
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Extended { .. })]),
        "{renewed:?}"
    );
    // The same file over itself: whoever has it open shares its log with everybody, whoever opens it now
    // might not.
    mount_over(file, file);
    let renewed = store.renew(&[asker.renew("job", first.token)]).await;
    assert!(
        matches!(&renewed[..], [Ok(Renewed::Extended { .. })]),
        "{renewed:?}"
    );
    is_a_mount(&SqliteStore::open(file).unwrap_err());
    let watched = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .map(drop);
    let watched = watched.unwrap_err().message;
    assert!(watched.contains("is itself a mount"), "{watched}");
}
