//! The places by which processes wait for a fair lock: what they cost.

use crate::harness::counting::Counting;
use crate::harness::noting::Noting;
use crate::harness::{PATIENCE, Site, long_lock_timing, pass_on, soon, within};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure::contract::{Answer, Fault, Interest, Scope, StoreTraits, Watch, WatchSource};
use tenure::{
    Fairness, LeaseName, LeaseStore, LockManager, LockTiming, LockTimingOptions, SharedStore, StoreError,
};
use tenure_testkit::eventually_async;

fn fair(store: SharedStore, candidate: &str) -> LockManager {
    fair_with(store, candidate, long_lock_timing())
}

fn fair_with(store: SharedStore, candidate: &str, timing: LockTiming) -> LockManager {
    let builder = LockManager::builder(store).candidate(candidate);
    let builder = builder.fairness(Fairness::Fair).timing(timing);
    builder.build().unwrap()
}

/// As a command leaves one each time that it is run.
#[tokio::test]
async fn places_of_processes_that_are_gone_are_not_read_each_time() {
    const GONE: u32 = 5_000;
    let site = Site::new();
    let mut lock = soon("the lock", fair(site.store(), "gone-0").lock("a"))
        .await
        .unwrap();
    soon("its release", lock.release()).await;
    let given_back = async || {
        let place = site.record("a/candidates/1/gone-0").await;
        place.is_some_and(|place| place.released)
    };
    eventually_async(Duration::from_secs(20), "its place is given back", given_back).await;
    let connection = rusqlite::Connection::open(site.file()).unwrap();
    let columns = "incarnation, token, attempt, terms, ttl_ms, boot_id, acquired_ns, renewed_ns, expires_ns, released, wish, note, \
                   version, created_at, acquired_at, last_renewed_at";
    connection
        .execute_batch(&format!(
            "WITH RECURSIVE number(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM number WHERE number < {GONE})
             INSERT INTO lease (name, owner, {columns})
             SELECT 'a/candidates/1/gone-' || number, 'gone-' || number, {columns} FROM number, lease
             WHERE name = 'a/candidates/1/gone-0'"
        ))
        .unwrap();
    let store = Arc::new(Counting::new(site.store()));
    let manager = fair(store.clone(), "next");
    let mut lock = soon("the lock", manager.try_lock("a")).await.unwrap();
    soon("its release", lock.release()).await;
    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
    soon("its release", lock.release()).await;
    assert!(store.pages() <= 3, "{} pages", store.pages());
}

/// So many turns two processes have had over this store, whose tasks ask again and again.
async fn turns_of_two(site: &Site, store: SharedStore) -> u64 {
    const TIMES: u32 = 40;
    let managers = [fair(store.clone(), "one"), fair(store, "other")].map(Arc::new);
    let mut tasks = Vec::new();
    for manager in &managers {
        for _task in 0..4 {
            let manager = manager.clone();
            tasks.push(tokio::spawn(async move {
                for _time in 0..TIMES {
                    let mut lock = manager.lock("a").await.unwrap();
                    // Longer than a row lasts, so that each turn has few of them.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    let _released = lock.release().await;
                }
            }));
        }
    }
    for task in tasks {
        within(4 * PATIENCE, "its turns", task).await.unwrap();
    }
    turns_had(site).await
}

/// So many turns "one" and "other" have had.
async fn turns_had(site: &Site) -> u64 {
    let mut turns = 0;
    for candidate in ["one", "other"] {
        let place = site.record(&format!("a/candidates/1/{candidate}")).await;
        turns += place.map_or(0, |place| place.terms);
    }
    assert!(turns >= 10, "{turns} turns show nothing");
    turns
}

/// Two that take turns have the same one before them each time.
#[tokio::test]
async fn the_watch_of_the_place_before_is_kept_from_turn_to_turn() {
    let site = Site::new();
    let store = Arc::new(Noting::over(site.store()));
    let turns = turns_of_two(&site, store.clone()).await;
    let watches = store.every_end.lock().unwrap().len() as u64;
    assert!(2 * watches <= turns, "{watches} watches in {turns} turns");
}

/// Looks that are kept would come ever more seldom.
async fn each_turn_begins_with_frequent_looks(watch: WatchSource, fault: Fault) {
    let site = Site::new();
    let store = Arc::new(Blind {
        inner: site.store(),
        watch,
        fault,
        asked: AtomicU64::new(0),
    });
    let turns = turns_of_two(&site, store.clone()).await;
    // Those that begin with a lock that nobody waits for need none.
    let asked = store.asked.load(Ordering::SeqCst);
    assert!(
        2 * asked >= turns,
        "looks were begun {asked} times in {turns} turns"
    );
}

#[tokio::test]
async fn where_there_is_no_watch_each_turn_begins_with_frequent_looks() {
    each_turn_begins_with_frequent_looks(WatchSource::Absent, Fault::Unsupported).await;
}

/// The store has watches, and no more of them now.
#[tokio::test]
async fn where_no_watch_can_be_had_just_now_each_turn_begins_with_frequent_looks() {
    each_turn_begins_with_frequent_looks(WatchSource::Push, Fault::Busy).await;
}

/// A blocking program has a runtime for each call, and none of them is driven after it.
#[test]
fn turns_of_runtimes_that_end_are_woken_as_those_of_one_that_goes_on() {
    const THREADS: usize = 3;
    const TIMES: usize = 6;
    let site = Site::new();
    // With each beat a place is looked at as well: none comes before a test gives up.
    let timing = LockTimingOptions::new(Duration::from_secs(3_600))
        .check()
        .unwrap();
    let managers = ["one", "other"].map(|candidate| fair_with(site.store(), candidate, timing));
    std::thread::scope(|scope| {
        for manager in &managers {
            for _thread in 0..THREADS {
                scope.spawn(move || {
                    for _time in 0..TIMES {
                        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                        let lock = runtime.unwrap().block_on(soon("the lock", manager.lock("a")));
                        std::thread::sleep(Duration::from_millis(30));
                        drop(lock.unwrap());
                    }
                });
            }
        }
    });
}

/// A real store that cannot be watched, as a MongoDB alone, or not just now; it counts who asks for that.
struct Blind {
    inner: SharedStore,
    watch: WatchSource,
    fault: Fault,
    asked: AtomicU64,
}

impl LeaseStore for Blind {
    pass_on!(acquire, renew, release, ask, get, list, examine, run_beside);

    fn traits(&self) -> StoreTraits {
        StoreTraits {
            watch: self.watch,
            ..self.inner.traits()
        }
    }

    fn watch<'a>(&'a self, scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        if *scope != Scope::Name(LeaseName::new("a").unwrap()) {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        let none = StoreError::not_applied(self.fault, "no watch");
        Box::pin(std::future::ready(Err(none)))
    }
}
