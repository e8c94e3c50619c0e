//! Being woken: by file notification, by polling where there is none, and after a writer's sudden death.

use crate::common::child::{NAMESPACES_NEEDED, in_role_after, role};
use crate::common::{Asker, PATIENCE, Scratch, grant, name};
use crate::places::is_woken;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tenure_core::{
    Ask, Asked, Change, Fault, FencingToken, LeaseStore, Scope, Watch, WatchEvent, WatchSource,
};
use tenure_sqlite::SqliteStore;
use tenure_testkit::Process;

#[test]
fn as_a_child() {
    let Some((role, file)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    match role.as_str() {
        "watcher without inotify" => runtime.block_on(watch_by_polling(&file)),
        "watcher that gets inotify later" => runtime.block_on(watch_until_told_by_the_kernel(&file)),
        "watchers with one inotify instance" => watch_idly(&file),
        "watcher without descriptors" => runtime.block_on(watch_without_descriptors(&file)),
        other => panic!("{other}"),
    }
}

async fn watch_by_polling(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    assert_eq!(store.traits().watch, WatchSource::Poll);
    let mut watch = store.watch(&Scope::Name(name("job"))).await.unwrap();
    println!("watching");
    // Until it is killed.
    loop {
        println!("told of {:?}", watch.next().await.unwrap());
    }
}

async fn watch_until_told_by_the_kernel(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let mut watch = store.watch(&Scope::Name(name("job"))).await.unwrap();
    assert!(!is_woken());
    std::fs::write("/proc/sys/user/max_inotify_instances", "8").unwrap();
    while watch.next().await.is_ok() {}
    // As whoever watches is told to.
    let _anew = store.watch(&Scope::Name(name("job"))).await.unwrap();
    println!("woken by the kernel: {}", is_woken());
}

async fn watch_without_descriptors(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let mut taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let mut refusals = 0;
    while let Err(error) = store.watch(&Scope::Name(name("job"))).await {
        // Which says that a watch can never be had here.
        assert_ne!(error.fault, Fault::Unsupported, "{error}");
        refusals += 1;
        drop(taken.pop().unwrap());
    }
    assert!(refusals > 0);
    println!("watching in the end");
}

/// Watches of one handle, each on a thread of its own as those of elections are.
const WATCHES: u32 = 40;

/// Times in a second that a watch may wake which nobody has anything to tell; one that polls wakes 100 times.
const WAKES_MAX: u64 = 20;

fn watch_idly(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let started = Arc::new(Barrier::new(WATCHES as usize + 1));
    for _ in 0..WATCHES {
        let (store, started) = (store.clone(), Arc::clone(&started));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let mut watch = store.watch(&Scope::Name(name("job"))).await.unwrap();
                started.wait();
                panic!("told of {:?}", watch.next().await);
            })
        });
    }
    started.wait();
    let (began, before) = (Instant::now(), wakes());
    std::thread::sleep(Duration::from_secs(2));
    let each = (wakes() - before) / u64::from(WATCHES) / began.elapsed().as_secs();
    println!(
        "idle: {}, woken {each} times a second",
        if each < WAKES_MAX { "yes" } else { "no" }
    );
}

/// How often the threads of this process have waited for something.
fn wakes() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .map(|task| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let waits = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            waits.unwrap().trim().parse::<u64>().unwrap()
        })
        .sum()
}

fn wake_file(scratch: &Scratch) -> PathBuf {
    let mut path = scratch.file().into_os_string();
    path.push("-wake");
    path.into()
}

async fn next(watch: &mut Box<dyn Watch>) -> WatchEvent {
    tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("an event comes")
        .unwrap()
}

fn changed(lease: &str, change: Change, token: FencingToken) -> WatchEvent {
    WatchEvent::Changed {
        name: name(lease),
        change,
        token: Some(token),
    }
}

#[tokio::test]
async fn renewals_wake_nobody_and_a_release_does() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    assert_eq!(store.traits().watch, WatchSource::Push);
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    let mut watch = other.watch(&Scope::Name(name("job"))).await.unwrap();
    for _ in 0..20 {
        drop(store.renew(&[asker.renew("job", first.token)]).await);
        let silent = tokio::time::timeout(Duration::from_millis(5), watch.next()).await;
        assert!(silent.is_err(), "{silent:?}");
    }
    drop(store.release(&[asker.release("job", first.token)]).await);
    assert_eq!(
        next(&mut watch).await,
        changed("job", Change::Vacated, first.token)
    );
}

/// How long a watch took to tell of a release, in the middle of several; `before` each of them, something is done.
///
/// Without the file notification it would still tell, by its check once a second: half a second late in
/// the middle. So the middle shows which of the two it was, also on a loaded machine.
async fn told_after(scratch: &Scratch, before: impl Fn()) -> Duration {
    let (store, other) = (scratch.open(), scratch.open());
    let mut watch = other.watch(&Scope::Name(name("job"))).await.unwrap();
    told_between(&store, &mut watch, before).await
}

async fn told_between(store: &SqliteStore, watch: &mut Box<dyn Watch>, before: impl Fn()) -> Duration {
    let mut asker = Asker::new("first");
    let mut waits = Vec::new();
    for _ in 0..15 {
        let grant = grant(store, &asker, "job").await;
        assert_eq!(next(watch).await, changed("job", Change::Taken, grant.token));
        before();
        let began = Instant::now();
        drop(store.release(&[asker.release("job", grant.token)]).await);
        assert_eq!(next(watch).await, changed("job", Change::Vacated, grant.token));
        waits.push(began.elapsed());
        asker = asker.next_attempt();
    }
    waits.sort_unstable();
    waits[7]
}

#[tokio::test]
async fn a_release_is_told_by_notification_and_not_by_the_slow_check() {
    let waited = told_after(&Scratch::new(), || {}).await;
    assert!(waited < Duration::from_millis(250), "{waited:?}");
}

/// A lock that changes hands in another process a thousand times a second wakes nobody here a thousand times.
#[tokio::test]
async fn terms_that_begin_wake_nobody_who_waits_for_an_end_and_a_release_does() {
    const TERMS: usize = 15;
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let job = Scope::Name(name("job"));
    let mut asker = Asker::new("first");
    let mut token = grant(&store, &asker, "job").await.token;
    let mut watch = other.watch_ends(&job).await.unwrap();
    let mut told = 0;
    for _ in 0..TERMS {
        asker = asker.next_attempt();
        token = grant(&store, &asker, "job").await.token;
        let event = tokio::time::timeout(Duration::from_millis(10), watch.next()).await;
        told += usize::from(event.is_ok());
    }
    assert!(told < TERMS / 2, "{told} by more than the check once a second");
    let mut waits = Vec::new();
    for _ in 0..TERMS {
        let began = Instant::now();
        drop(store.release(&[asker.release("job", token)]).await);
        while next(&mut watch).await != changed("job", Change::Vacated, token) {}
        waits.push(began.elapsed());
        asker = asker.next_attempt();
        token = grant(&store, &asker, "job").await.token;
    }
    waits.sort_unstable();
    assert!(waits[TERMS / 2] < Duration::from_millis(250), "{waits:?}");
}

/// Also where another watch of the same handle, which was first, waits for an end.
#[tokio::test]
async fn a_term_that_begins_is_told_by_notification_and_not_by_the_slow_check() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let job = Scope::Name(name("job"));
    let ends = other.watch_ends(&job).await.unwrap();
    let mut watch = other.watch(&job).await.unwrap();
    let mut asker = Asker::new("first");
    let mut waits = Vec::new();
    for _ in 0..15 {
        let began = Instant::now();
        let token = grant(&store, &asker, "job").await.token;
        assert_eq!(next(&mut watch).await, changed("job", Change::Taken, token));
        waits.push(began.elapsed());
        asker = asker.next_attempt();
    }
    waits.sort_unstable();
    assert!(waits[7] < Duration::from_millis(250), "{waits:?}");
    drop(ends);
}

/// The holder ends its work for it: so it is told as soon as a release is.
#[tokio::test]
async fn a_wish_is_told_by_notification_and_not_by_the_slow_check() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let mut watch = store.watch(&Scope::Name(name("job"))).await.unwrap();
    let mut asker = Asker::new("first");
    let mut waits = Vec::new();
    for _ in 0..15 {
        let token = grant(&store, &asker, "job").await.token;
        assert_eq!(next(&mut watch).await, changed("job", Change::Taken, token));
        let began = Instant::now();
        let wish = Ask {
            name: name("job"),
            token,
        };
        assert_eq!(other.ask(&wish).await, Ok(Asked::Noted));
        assert_eq!(next(&mut watch).await, changed("job", Change::Asked, token));
        waits.push(began.elapsed());
        drop(store.release(&[asker.release("job", token)]).await);
        assert_eq!(next(&mut watch).await, changed("job", Change::Vacated, token));
        asker = asker.next_attempt();
    }
    waits.sort_unstable();
    assert!(waits[7] < Duration::from_millis(250), "{waits:?}");
}

#[tokio::test]
async fn a_release_is_told_by_notification_also_through_a_wake_file_that_was_emptied() {
    let scratch = Scratch::new();
    let empty = || drop(std::fs::File::create(wake_file(&scratch)).unwrap());
    let waited = told_after(&scratch, empty).await;
    assert!(waited < Duration::from_millis(250), "{waited:?}");
}

/// As a restore does it. What was moved away is no longer read when somebody wakes others.
#[tokio::test]
async fn a_release_is_told_by_notification_also_in_a_directory_that_was_replaced() {
    let scratch = Scratch::new();
    let directory = scratch.directory().join("used");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("leases.db");
    let [store, other] = [(), ()].map(|()| SqliteStore::open(&file).unwrap());
    let mut watch = other.watch(&Scope::Name(name("job"))).await.unwrap();
    std::fs::rename(&directory, scratch.directory().join("old")).unwrap();
    std::fs::create_dir(&directory).unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Gap);
    let waited = told_between(&store, &mut watch, || {}).await;
    assert!(waited < Duration::from_millis(250), "{waited:?}");
}

/// A watch whose `next` is dropped again and again, as in a `select!`, still tells everything.
#[tokio::test]
async fn a_dropped_next_loses_nothing() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let asker = Asker::new("first");
    let mut watch = other.watch(&Scope::Prefix(String::new())).await.unwrap();
    let first = grant(&store, &asker, "job").await;
    drop(store.release(&[asker.release("job", first.token)]).await);
    let mut told = Vec::new();
    for _ in 0..10_000 {
        if let Ok(event) = tokio::time::timeout(Duration::from_micros(500), watch.next()).await {
            told.push(event.unwrap());
        }
        if told.len() == 2 {
            break;
        }
    }
    let expected = [
        changed("job", Change::Taken, first.token),
        changed("job", Change::Vacated, first.token),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_deleted_wake_file_is_made_anew() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let mut watch = other.watch(&Scope::Name(name("job"))).await.unwrap();
    std::fs::remove_file(wake_file(&scratch)).unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Gap);
    let first = grant(&store, &Asker::new("first"), "job").await;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, first.token));
}

/// The kernel tells of the end of a file only when nobody has it open any more, and whoever has knocked has.
#[tokio::test]
async fn a_deleted_wake_file_is_noticed_although_somebody_has_it_open() {
    let scratch = Scratch::new();
    let (store, other, knocks) = (scratch.open(), scratch.open(), scratch.open());
    let asker = Asker::new("early");
    let early = grant(&knocks, &asker, "early").await;
    drop(knocks.release(&[asker.release("early", early.token)]).await);
    let mut watch = other.watch(&Scope::Name(name("job"))).await.unwrap();
    std::fs::remove_file(wake_file(&scratch)).unwrap();
    assert_eq!(next(&mut watch).await, WatchEvent::Gap);
    let first = grant(&store, &Asker::new("first"), "job").await;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, first.token));
}

/// One moment without a free instance must not have a process look a hundred times a second for as long as it lives.
#[test]
fn a_watch_that_polls_is_begun_anew_once_the_kernel_can_be_asked() {
    let scratch = Scratch::new();
    let none = "echo 0 > /proc/sys/user/max_inotify_instances";
    let role = "watcher that gets inotify later";
    let watcher = Process::spawn(in_role_after(none, module_path!(), role, &scratch.file())).unwrap();
    watcher
        .wait_for_line("woken by the kernel: true", PATIENCE)
        .unwrap_or_else(|error| panic!("{error}\n{NAMESPACES_NEEDED}"));
}

/// A writer that is killed between its commit and the knock, or that never knocks.
#[tokio::test]
async fn a_change_without_a_knock_is_still_told() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let first = grant(&store, &Asker::new("first"), "job").await;
    let mut watch = other.watch(&Scope::Name(name("job"))).await.unwrap();
    scratch.sql("UPDATE lease SET released = 1, version = version + 1");
    assert_eq!(
        next(&mut watch).await,
        changed("job", Change::Vacated, first.token)
    );
}

fn watcher_without_inotify(scratch: &Scratch) -> Process {
    let exhausted = "echo 0 > /proc/sys/user/max_inotify_instances";
    let watcher = in_role_after(
        exhausted,
        module_path!(),
        "watcher without inotify",
        &scratch.file(),
    );
    let watcher = Process::spawn(watcher).unwrap();
    watcher
        .wait_for_line("watching", PATIENCE)
        .unwrap_or_else(|error| panic!("{error}\n{NAMESPACES_NEEDED}"));
    watcher
}

/// A user has 128 as a rule, for all programs.
#[test]
fn all_watches_of_a_handle_are_woken_by_one_inotify_instance() {
    let scratch = Scratch::new();
    let one = "echo 1 > /proc/sys/user/max_inotify_instances";
    let role = "watchers with one inotify instance";
    let watchers = Process::spawn(in_role_after(one, module_path!(), role, &scratch.file())).unwrap();
    watchers
        .wait_for_line("idle: yes", PATIENCE)
        .unwrap_or_else(|error| panic!("{error}\n{NAMESPACES_NEEDED}"));
}

/// It reads nothing of what the kernel says, and another of the same handle does.
#[tokio::test]
async fn a_watch_that_nobody_polls_holds_up_no_other() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let all = Scope::Prefix(String::new());
    let (before, mut watch) = (other.watch(&all).await, other.watch(&all).await.unwrap());
    let after = other.watch(&all).await;
    let waited = told_between(&store, &mut watch, || {}).await;
    assert!(waited < Duration::from_millis(250), "{waited:?}");
    for unpolled in [before, after] {
        let event = next(&mut unpolled.unwrap()).await;
        assert!(matches!(event, WatchEvent::Changed { .. }), "{event:?}");
    }
}

#[tokio::test]
async fn all_watches_of_a_handle_end_with_a_file_that_is_no_store_and_begin_anew_with_one_that_is() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open(), scratch.open());
    let job = Scope::Name(name("job"));
    let mut watches = [(); 2].map(|()| None);
    for watch in &mut watches {
        *watch = Some(other.watch(&job).await.unwrap());
    }
    let aside = scratch.directory().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let files = ["", "-wal", "-shm"].map(|suffix| {
        let mut path = scratch.file().into_os_string();
        path.push(suffix);
        let path = PathBuf::from(path);
        let there = aside.join(path.file_name().unwrap());
        (path, there)
    });
    for (here, there) in &files {
        std::fs::rename(here, there).unwrap();
    }
    std::fs::write(scratch.file(), "no database ".repeat(100)).unwrap();
    for watch in watches.iter_mut().flatten() {
        let ended = async { while watch.next().await.is_ok() {} };
        tokio::time::timeout(PATIENCE, ended).await.expect("it ends");
    }
    std::fs::remove_file(scratch.file()).unwrap();
    for (here, there) in &files {
        std::fs::rename(there, here).unwrap();
    }
    // Also beside those that have ended and are kept.
    let mut watch = other.watch(&job).await.unwrap();
    let first = grant(&store, &Asker::new("first"), "job").await;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, first.token));
    drop(watches);
}

/// What is in the new file counts, and not what goes on in the one that was removed.
#[tokio::test]
async fn a_watch_without_inotify_follows_a_file_that_was_replaced() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let first = grant(&store, &Asker::new("first"), "job").await;
    let watcher = watcher_without_inotify(&scratch);
    for suffix in ["", "-wal", "-shm"] {
        let mut path = scratch.file().into_os_string();
        path.push(suffix);
        std::fs::remove_file(path).unwrap();
    }
    let second = grant(&store, &Asker::new("second"), "job").await;
    assert!(second.token > first.token);
    let told = format!("told of {:?}", changed("job", Change::Taken, second.token));
    drop(watcher.wait_for_line(&told, PATIENCE).unwrap());
}

#[test]
fn a_watch_for_which_no_descriptor_is_left_may_be_had_later() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let (few, role) = ("ulimit -n 64", "watcher without descriptors");
    let watcher = in_role_after(few, module_path!(), role, &scratch.file());
    let watcher = Process::spawn(watcher).unwrap();
    watcher
        .wait_for_line("watching in the end", PATIENCE)
        .unwrap_or_else(|error| panic!("{error}\n{NAMESPACES_NEEDED}"));
}

#[tokio::test]
async fn without_inotify_a_watch_polls() {
    let scratch = Scratch::new();
    let store = scratch.open();
    let asker = Asker::new("first");
    let first = grant(&store, &asker, "job").await;
    let watcher = watcher_without_inotify(&scratch);
    drop(store.release(&[asker.release("job", first.token)]).await);
    drop(
        watcher
            .wait_for_line("told of Changed { name: \"job\", change: Vacated", PATIENCE)
            .unwrap(),
    );
}
