//! First come, first served, and a dead waiter holds nobody up for longer than its ttl.
use crate::harness::noting::Noting;
use crate::harness::{LONG_BEFORE, PATIENCE, Site, long_lock_timing, soon, turns};
use std::future::poll_fn;
use std::ops::Range;
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tenure::contract::{Occupancy, Scope};
use tenure::sqlite::SqliteStore;
use tenure::{
    Fairness, FencingToken, LeaseName, LockError, LockManager, LockTiming, LockTimingOptions, ReleaseOutcome,
};
use tenure_testkit::{Process, eventually_async};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

const FILE: &str = "TENURE_TEST_QUEUE_FILE";

fn fair(site: &Site, candidate: &str) -> LockManager {
    site.manager_builder(candidate)
        .fairness(Fairness::Fair)
        .timing(long_lock_timing())
        .build()
        .unwrap()
}

async fn wait_until_queued(site: &Site, candidate: &str) {
    let place = format!("a/candidates/1/{candidate}");
    let queued = || async {
        let record = site.record(&place).await;
        record.is_some_and(|lease| lease.occupancy() == Occupancy::Held)
    };
    eventually_async(PATIENCE, "a place in the queue", queued).await;
}

async fn wait_until_left(site: &Site, candidate: &str) {
    let place = format!("a/candidates/1/{candidate}");
    let left = || async { site.record(&place).await.unwrap().occupancy() == Occupancy::Vacant };
    eventually_async(PATIENCE, "the place is given back", left).await;
}

#[tokio::test]
async fn no_process_is_overtaken_twice_by_another() {
    // Each round waits for several writes.
    let site = Site::in_memory();
    turns::nobody_is_overtaken_twice(8, async || site.store()).await;
}

/// How many of one process go before one of another who came to the queue after the first of them; each has
/// the lock for as long as is said.
async fn went_before_another(held_for: &[Duration]) -> usize {
    let site = Site::in_memory();
    let (first, other) = (fair(&site, "first"), fair(&site, "other"));
    let store = Arc::new(Noting::over(site.store()));
    let many = LockManager::builder(store.clone())
        .candidate("many")
        .fairness(Fairness::Fair)
        .timing(long_lock_timing());
    let many = Arc::new(many.build().unwrap());
    let mut blocker = soon("the blocker", first.lock("a")).await.unwrap();
    // All of them are to be in line before the turn of their process comes.
    let before_all = soon("the turn", first.turn("a")).await.unwrap();
    let story = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for held_for in held_for.iter().copied() {
        let (manager, story) = (many.clone(), story.clone());
        tasks.push(tokio::spawn(async move {
            let mut lock = manager.lock("a").await.unwrap();
            story.lock().unwrap().push(("many", lock.token()));
            if !held_for.is_zero() {
                tokio::time::sleep(held_for).await;
            }
            assert_eq!(lock.release().await, ReleaseOutcome::Released);
        }));
    }
    wait_until_queued(&site, "many").await;
    let told = story.clone();
    tasks.push(tokio::spawn(async move {
        let mut lock = other.lock("a").await.unwrap();
        told.lock().unwrap().push(("other", lock.token()));
        assert_eq!(lock.release().await, ReleaseOutcome::Released);
    }));
    wait_until_queued(&site, "other").await;
    drop(before_all);
    // Else the lock may be free when the first of them asks, and be given back before the second has come
    // after it.
    let lock = Scope::Name(LeaseName::new("a").unwrap());
    let waits = || async { store.ends.lock().unwrap().contains(&lock) };
    eventually_async(PATIENCE, "the first waits for the lock", waits).await;
    assert_eq!(
        soon("the release", blocker.release()).await,
        ReleaseOutcome::Released
    );
    for task in tasks {
        soon("its turn", task).await.unwrap();
    }
    let story = story.lock().unwrap().clone();
    assert_eq!(story.len(), held_for.len() + 1);
    assert!(
        story.windows(2).all(|pair| pair[0].1 < pair[1].1),
        "tokens rise: {story:?}"
    );
    story.iter().position(|(who, _)| *who == "other").unwrap()
}

/// Longer than a process's turn is extended for those who have the lock briefly.
const LONGER_THAN_A_TURN: Duration = Duration::from_millis(25);

/// Nine of a process may go in one turn; a tenth waits for those of other processes who came meanwhile.
#[tokio::test]
async fn waiters_of_one_process_share_its_turn_and_no_more_than_nine() {
    let before_other = went_before_another(&[LONGER_THAN_A_TURN; 14]).await;
    assert!(
        (2..=9).contains(&before_other),
        "{before_other} of another process went first"
    );
}

/// Who has it within the first milliseconds of a turn counts for nothing: eight more go. A slow machine may
/// have no second one who does, but not every time.
#[tokio::test]
async fn those_who_keep_the_lock_for_a_moment_do_not_use_their_process_s_turn_up() {
    const TRIES_MAX: u32 = 20;
    const BRIEF: usize = 4;
    let mut held_for = [LONGER_THAN_A_TURN; 20];
    held_for[..BRIEF].fill(Duration::ZERO);
    for _ in 0..TRIES_MAX {
        let before_other = went_before_another(&held_for).await;
        // Of those who keep it for longer, one may have it as early.
        assert!(
            (2..=BRIEF + 9).contains(&before_other),
            "{before_other} of another process went first"
        );
        if before_other > 9 {
            return;
        }
    }
    panic!("no more than nine in a turn, {TRIES_MAX} times");
}

/// Tasks of one process that wait in this order; each tells that it has the lock, and keeps it until the gate
/// lets it through.
fn waiters(
    manager: &Arc<LockManager>,
    numbers: Range<usize>,
    gate: &Arc<Semaphore>,
    story: &Story,
) -> Vec<JoinHandle<()>> {
    let wait = |number| {
        let (manager, gate, story) = (manager.clone(), gate.clone(), story.clone());
        tokio::spawn(async move {
            let mut lock = manager.lock("a").await.unwrap();
            story.lock().unwrap().push((number, lock.token()));
            gate.acquire().await.unwrap().forget();
            assert_eq!(lock.release().await, ReleaseOutcome::Released);
        })
    };
    numbers.map(wait).collect()
}

type Story = Arc<Mutex<Vec<(usize, FencingToken)>>>;

async fn until_so_many_had_it(story: &Story, takers: usize) {
    let had_it = || async { story.lock().unwrap().len() >= takers };
    eventually_async(Duration::from_secs(20), "they have the lock", had_it).await;
}

/// Who has it has left the queue: were another of its process to enter it now, a second turn would come
/// before whoever arrives in the first.
#[tokio::test]
async fn whoever_comes_in_a_turn_waits_for_the_rest_of_it_and_for_no_more() {
    const WAITERS: usize = 40;
    let site = Site::new();
    let (first, many) = (fair(&site, "first"), Arc::new(fair(&site, "many")));
    let (second, other) = (fair(&site, "second"), fair(&site, "other"));
    let mut blocker = soon("the blocker", first.lock("a")).await.unwrap();
    let second = tokio::spawn(async move { drop(second.lock("a").await.unwrap()) });
    wait_until_queued(&site, "second").await;
    let (gate, story) = (Arc::new(Semaphore::new(0)), Story::default());
    let waiters = waiters(&many, 0..WAITERS, &gate, &story);
    wait_until_queued(&site, "many").await;
    blocker.release().await;
    soon("the second", second).await.unwrap();
    until_so_many_had_it(&story, 1).await;
    // Long enough for another turn to be asked for, if it is.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let waiting = tokio::spawn(async move { other.lock("a").await.map(|lock| lock.token()) });
    wait_until_queued(&site, "other").await;
    gate.add_permits(WAITERS);
    let other = soon("the other", waiting).await.unwrap().unwrap();
    for waiter in waiters {
        soon("its turn", waiter).await.unwrap();
    }
    let story = story.lock().unwrap();
    let before = story.iter().filter(|(_, token)| *token < other).count();
    assert!(
        (2..=9).contains(&before),
        "{before} went before {other}: {story:?}"
    );
}

/// Some are called along while others come, turns end in the middle of those who follow: each keeps its
/// number.
#[tokio::test]
async fn those_of_one_process_have_their_turns_in_the_order_in_which_they_came() {
    const WAITERS: usize = 30;
    let site = Site::new();
    let (blocker, many) = (fair(&site, "blocker"), Arc::new(fair(&site, "many")));
    let mut held = soon("the blocker", blocker.lock("a")).await.unwrap();
    let (gate, story) = (Arc::new(Semaphore::new(0)), Story::default());
    let mut tasks = waiters(&many, 0..4, &gate, &story);
    wait_until_queued(&site, "many").await;
    held.release().await;
    until_so_many_had_it(&story, 1).await;
    for number in 4..WAITERS {
        tasks.extend(waiters(&many, number..number + 1, &gate, &story));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The last of the first turn has it for long enough for the next turn to begin behind it, in the middle
    // of what may be handed on in a row: not all who are called along then get it.
    gate.add_permits(3);
    until_so_many_had_it(&story, 4).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    gate.add_permits(WAITERS);
    for task in tasks {
        soon("its turn", task).await.unwrap();
    }
    let story = story.lock().unwrap();
    let order: Vec<usize> = story.iter().map(|(number, _)| *number).collect();
    assert_eq!(order, (0..WAITERS).collect::<Vec<_>>());
}

/// Each has it so briefly that those called by one who has it and those called by one who follows are under
/// way together, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_of_one_process_keep_their_order_where_each_has_the_lock_for_a_moment() {
    const WAITERS: usize = 60;
    for _round in 0..5 {
        let site = Site::in_memory();
        let (blocker, many) = (fair(&site, "blocker"), Arc::new(fair(&site, "many")));
        let mut held = soon("the blocker", blocker.lock("a")).await.unwrap();
        let story = Story::default();
        let mut tasks = Vec::new();
        for number in 0..WAITERS {
            let (manager, story) = (many.clone(), story.clone());
            let (stands, in_line) = oneshot::channel();
            tasks.push(tokio::spawn(async move {
                let mut locking = pin!(manager.lock("a"));
                let early = poll_fn(|context| Poll::Ready(locking.as_mut().poll(context))).await;
                assert!(early.is_pending());
                stands.send(()).unwrap();
                let mut lock = locking.await.unwrap();
                story.lock().unwrap().push((number, lock.token()));
                assert_eq!(lock.release().await, ReleaseOutcome::Released);
            }));
            in_line.await.unwrap();
        }
        wait_until_queued(&site, "many").await;
        held.release().await;
        for task in tasks {
            soon("its turn", task).await.unwrap();
        }
        let story = story.lock().unwrap();
        let order: Vec<usize> = story.iter().map(|(number, _)| *number).collect();
        assert_eq!(order, (0..WAITERS).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_look_overtakes_nobody_and_the_queue_leaves_nothing_held() {
    let site = Site::new();
    let (one, two) = (fair(&site, "one"), Arc::new(fair(&site, "two")));
    let mut lock = soon("the lock", one.lock("a")).await.unwrap();
    let waiting = two.clone();
    let waiting = tokio::spawn(async move { waiting.lock("a").await });
    wait_until_queued(&site, "two").await;
    let outcome = soon("a look", one.try_lock("a")).await;
    assert!(matches!(outcome, Err(LockError::OthersWait(_))), "{outcome:?}");
    waiting.abort();
    wait_until_left(&site, "two").await;
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
    let outcome = two.try_lock_for("a", Duration::from_secs(10)).await;
    assert!(soon("the look", one.try_lock("a")).await.is_err(), "{outcome:?}");
    wait_until_left(&site, "two").await;
}

/// That of the child alone. Those who are late by seconds are still late by less than another ttl.
fn childs_timing() -> LockTiming {
    LockTimingOptions::new(Duration::from_secs(15)).check().unwrap()
}

/// What a child does: waits in the queue, for as long as it lives. Nothing unless it is one.
#[tokio::test]
async fn as_a_child() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let store = Arc::new(SqliteStore::open(Path::new(&file)).unwrap());
    let manager = LockManager::builder(store)
        .candidate("child")
        .fairness(Fairness::Fair)
        .timing(childs_timing())
        .build()
        .unwrap();
    drop(manager.lock("a").await);
}

#[tokio::test]
async fn a_dead_waiter_holds_the_queue_up_for_its_ttl_at_most() {
    let site = Site::new();
    let (one, two) = (fair(&site, "one"), fair(&site, "two"));
    let mut lock = soon("the lock", one.lock("a")).await.unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["lock_fairness::as_a_child", "--exact", "--nocapture"])
        .env(FILE, site.file());
    let child = Process::spawn(command).unwrap();
    wait_until_queued(&site, "child").await;
    let waiting = tokio::spawn(async move { (two.lock("a").await, two) });
    wait_until_queued(&site, "two").await;
    child.kill_tree();
    let killed_at = Instant::now();
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
    let (lock, _two) = soon("its turn", waiting).await.unwrap();
    drop(lock.unwrap());
    let (took, ttl) = (killed_at.elapsed(), childs_timing().lease().ttl().duration());
    assert!(took > ttl / 3, "the dead waiter came first: {took:?}");
    assert!(took < ttl + LONG_BEFORE, "{took:?}");
}

/// How long a lock may be held is no bound on how long one may wait for it: the place in the queue stays what
/// it was.
#[tokio::test]
async fn who_waits_longer_than_a_lock_may_be_held_keeps_its_place() {
    const MAX_HOLD: Duration = Duration::from_secs(1);
    let site = Site::new();
    let blocker = fair(&site, "blocker");
    let mut held = soon("the blocker", blocker.lock("a")).await.unwrap();
    let mut waiting = Vec::new();
    // The first waits for the lock; the others wait for the one before.
    for candidate in ["first", "second", "third"] {
        let manager = site
            .manager_builder(candidate)
            .fairness(Fairness::Fair)
            .max_hold(MAX_HOLD);
        let manager = manager.build().unwrap();
        waiting.push(tokio::spawn(async move {
            let lock = manager.lock("a").await.unwrap();
            let token = lock.token();
            drop(lock);
            manager.close().await;
            token
        }));
        wait_until_queued(&site, candidate).await;
    }
    tokio::time::sleep(MAX_HOLD * 3).await;
    for candidate in ["first", "second", "third"] {
        let place = format!("a/candidates/1/{candidate}");
        let place = site.record(&place).await.unwrap();
        assert_eq!((place.terms, place.occupancy()), (1, Occupancy::Held));
    }
    assert_eq!(
        soon("the release", held.release()).await,
        ReleaseOutcome::Released
    );
    let mut tokens = Vec::new();
    for task in waiting {
        tokens.push(soon("its turn", task).await.unwrap());
    }
    assert!(tokens.is_sorted(), "in the order in which they came: {tokens:?}");
}

#[tokio::test]
async fn a_manager_that_closes_leaves_the_queue_although_an_owner_waits_in_it() {
    let site = Site::new();
    let (blocker, closing) = (fair(&site, "blocker"), fair(&site, "closing"));
    let held = soon("the blocker", blocker.lock("a")).await.unwrap();
    // Somebody is before it in the queue: it waits for that one, and not for the lock.
    let before = fair(&site, "before");
    let first = tokio::spawn(async move { before.lock("a").await.map(|lock| lock.token()) });
    wait_until_queued(&site, "before").await;
    let owner = closing.owner();
    let waiting = tokio::spawn(async move { owner.lock("a").await.map(|lock| lock.token()) });
    wait_until_queued(&site, "closing").await;
    let began = Instant::now();
    soon("closed", closing.close()).await;
    assert!(began.elapsed() < LONG_BEFORE, "{:?}", began.elapsed());
    let ended = soon("the wait", waiting).await.unwrap();
    assert!(
        matches!(ended, Err(LockError::Stopped(ref name)) if name.as_str() == "a"),
        "{ended:?}"
    );
    let place = site.record("a/candidates/1/closing").await.unwrap();
    assert_eq!(place.occupancy(), Occupancy::Vacant);
    drop(held);
    soon("the first", first).await.unwrap().unwrap();
}

/// Its machine lost its power while it waited: the clock that its place was written by is gone.
#[tokio::test]
async fn a_place_of_another_boot_holds_the_queue_up_for_its_ttl_at_most() {
    let site = Site::new();
    let (blocker, waiter) = (fair(&site, "blocker"), fair(&site, "waiter"));
    let mut held = soon("the blocker", blocker.lock("a")).await.unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["lock_fairness::as_a_child", "--exact", "--nocapture"])
        .env(FILE, site.file());
    let child = Process::spawn(command).unwrap();
    wait_until_queued(&site, "child").await;
    child.kill_tree();
    let other_boot =
        "UPDATE lease SET boot_id = '00000000-0000-4000-8000-000000000000' WHERE name LIKE '%/child'";
    site.lock()
        .execute_batch(&format!("{other_boot}; COMMIT"))
        .unwrap();
    assert_eq!(
        soon("the release", held.release()).await,
        ReleaseOutcome::Released
    );
    drop(soon("its turn", waiter.lock("a")).await.unwrap());
}
