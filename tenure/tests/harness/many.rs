//! What must hold of many locks, whatever store they are in.

use super::counting::Counting;
use super::{soon, within};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::{Cause, Lock, LockManager, LockTimingOptions, SharedStore};

const LOCKS: usize = 1_000;

/// The lock whose record is tampered with.
pub const VICTIM: &str = "lock/500";

/// One beat extends them all in few calls, and gives a verdict for each.
pub async fn a_beat_extends_all_and_one_that_is_lost_disturbs_none<Tampering>(
    store: SharedStore,
    ttl: Duration,
    tamper: impl FnOnce() -> Tampering,
) where
    Tampering: Future<Output = ()>,
{
    let counting = Arc::new(Counting::new(store));
    let timing = LockTimingOptions::new(ttl).check().unwrap();
    let manager = LockManager::builder(counting.clone())
        .timing(timing)
        .build()
        .unwrap();
    let manager = Arc::new(manager);
    let locks = soon("taking them", take(&manager)).await;
    let (victim, others): (Vec<Lock>, Vec<Lock>) =
        locks.into_iter().partition(|lock| lock.name().as_str() == VICTIM);
    // Taken one after the other, so the first beats come one after the other; then they have found together.
    tokio::time::sleep(timing.lease().renew_every() * 5 / 4).await;
    let before = counting.renewals();
    tamper().await;
    let loss = soon("the loss", victim[0].lost()).await;
    assert!(
        matches!(loss.cause, Cause::Succeeded { .. } | Cause::Vanished),
        "{loss}"
    );
    tokio::time::sleep(timing.lease().renew_every() * 5 / 4).await;
    for lock in &others {
        assert!(
            lock.remaining() > ttl / 3,
            "{lock:?} was not extended with the last beat"
        );
    }
    let calls = counting.renewals() - before;
    // Three beats at most; one call for each lock would be a thousand a beat.
    assert!((2..=40).contains(&calls), "{calls} calls");
    println!("{calls} calls extended {LOCKS} locks in three beats at most");
}

async fn take(manager: &Arc<LockManager>) -> Vec<Lock> {
    let mut tasks = Vec::new();
    for number in 0..LOCKS {
        let manager = manager.clone();
        tasks.push(tokio::spawn(async move {
            manager.lock(format!("lock/{number}")).await.unwrap()
        }));
    }
    let mut locks = Vec::new();
    for task in tasks {
        locks.push(task.await.unwrap());
    }
    locks
}

const TASKS: usize = 64;
const TURNS: usize = 4;

/// Each of the turns waits for a disk.
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(180);

/// 64 tasks in four managers, as in four processes, read, change and write one number: nothing is lost, by
/// the recorded history, in the order of the tokens.
pub async fn sixty_four_tasks_lose_no_update(stores: [SharedStore; 4]) {
    let history = Arc::new(Mutex::new(Vec::new()));
    let timing = LockTimingOptions::new(Duration::from_secs(12)).check().unwrap();
    let managers = stores.map(|store| Arc::new(LockManager::builder(store).timing(timing).build().unwrap()));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (manager, history) = (managers[task % managers.len()].clone(), history.clone());
            tokio::spawn(async move {
                for _ in 0..TURNS {
                    let mut lock = manager.lock("number").await.unwrap();
                    let read = history.lock().unwrap().len();
                    tokio::task::yield_now().await;
                    history.lock().unwrap().push((lock.token(), read));
                    lock.release().await;
                }
            })
        })
        .collect();
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    within(PATIENCE_FOR_ALL, "the turns of all tasks", all).await;
    let history = history.lock().unwrap();
    assert_eq!(history.len(), TASKS * TURNS);
    for (index, (token, read)) in history.iter().enumerate() {
        assert_eq!(*read, index, "an update was lost at {index}");
        assert!(
            index == 0 || history[index - 1].0 < *token,
            "token {token} does not rise"
        );
    }
}

/// Of a beat in which one row is locked by somebody else, for longer than the locks live, the others are
/// extended all the same. `keep_locked` returns when the row of the named lock is free again.
pub async fn a_row_that_is_kept_locked_costs_its_own_lock_alone<Keeping>(
    store: SharedStore,
    keep_locked: impl FnOnce(&'static str) -> Keeping,
) where
    Keeping: Future<Output = ()>,
{
    // So short that a request may take less than these servers' own bounds on a wait for a row.
    let timing = LockTimingOptions {
        // Those that are not locked outlast a stall of three seconds.
        renew_every: Some(Duration::from_millis(500)),
        ..LockTimingOptions::new(Duration::from_secs(4))
    };
    let timing = timing.check().unwrap();
    let manager = LockManager::builder(store).timing(timing).build().unwrap();
    let mut locks = Vec::new();
    for name in ["one", "two", "three"] {
        locks.push(soon("a lock", manager.lock(name)).await.unwrap());
    }
    keep_locked("one").await;
    assert!(
        locks[0].remaining().is_zero(),
        "its row was locked: {:?}",
        locks[0]
    );
    for lock in &locks[1..] {
        assert!(!lock.remaining().is_zero(), "{lock:?}");
    }
}
