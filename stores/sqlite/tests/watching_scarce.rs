//! Being woken where the system has no inotify instance left, or no descriptor: by polling, until there is
//! one.

use crate::common::child::{NAMESPACES_NEEDED, in_role_after, role};
use crate::common::{Asker, PATIENCE, Scratch, grant, name};
use crate::places::is_woken;
use crate::watching::changed;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tenure_core::{Change, Fault, Interest, LeaseStore, Scope, WatchSource};
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
    let mut watch = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    println!("watching");
    // Until it is killed.
    loop {
        println!("told of {:?}", watch.next().await.unwrap());
    }
}

async fn watch_until_told_by_the_kernel(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let mut watch = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    assert!(!is_woken());
    std::fs::write("/proc/sys/user/max_inotify_instances", "8").unwrap();
    while watch.next().await.is_ok() {}
    // As whoever watches is told to.
    let _anew = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .unwrap();
    println!("woken by the kernel: {}", is_woken());
}

async fn watch_without_descriptors(file: &Path) {
    let store = SqliteStore::open(file).unwrap();
    let mut taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let mut refusals = 0;
    while let Err(error) = store.watch(&Scope::Name(name("job")), Interest::Everything).await {
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
                let mut watch = store
                    .watch(&Scope::Name(name("job")), Interest::Everything)
                    .await
                    .unwrap();
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

/// A process that watches in this role, where something is scarce, once it has said this.
fn watcher(scarce: &str, role: &str, scratch: &Scratch, says: &str) -> Process {
    let watcher = in_role_after(scarce, module_path!(), role, &scratch.file());
    let watcher = Process::spawn(watcher).unwrap();
    watcher
        .wait_for_line(says, PATIENCE)
        .unwrap_or_else(|error| panic!("{error}\n{NAMESPACES_NEEDED}"));
    watcher
}

const NO_INOTIFY: &str = "echo 0 > /proc/sys/user/max_inotify_instances";

fn watcher_without_inotify(scratch: &Scratch) -> Process {
    watcher(NO_INOTIFY, "watcher without inotify", scratch, "watching")
}

/// A user has 128 as a rule, for all programs.
#[test]
fn all_watches_of_a_handle_are_woken_by_one_inotify_instance() {
    let one = "echo 1 > /proc/sys/user/max_inotify_instances";
    let (scratch, role) = (Scratch::new(), "watchers with one inotify instance");
    drop(watcher(one, role, &scratch, "idle: yes"));
}

/// One moment without a free instance must not have a process look a hundred times a second for as long as it
/// lives.
#[test]
fn a_watch_that_polls_is_begun_anew_once_the_kernel_can_be_asked() {
    let (scratch, role) = (Scratch::new(), "watcher that gets inotify later");
    drop(watcher(NO_INOTIFY, role, &scratch, "woken by the kernel: true"));
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
    drop(watcher(few, role, &scratch, "watching in the end"));
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
