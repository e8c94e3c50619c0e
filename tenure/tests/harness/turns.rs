//! Taking turns in a queue, in whatever store.

use super::{PATIENCE, long_lock_timing, soon, within};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::contract::Occupancy;
use tenure::{Fairness, LeaseName, LockManager, ReleaseOutcome, SharedStore};
use tenure_testkit::eventually_async;

const MANAGERS: usize = 5;

fn fair(store: SharedStore, candidate: &str) -> LockManager {
    let builder = LockManager::builder(store).candidate(candidate);
    let builder = builder.fairness(Fairness::Fair).timing(long_lock_timing());
    builder.build().unwrap()
}

/// Each asks again as soon as it has released, and releases when whoever wants it again stands in the queue:
/// then every one of them has its turn before anybody has another. Each has a connection of its own.
pub async fn nobody_is_overtaken_twice(rounds: usize, connect: impl AsyncFn() -> SharedStore) {
    let looks = connect().await;
    let first = fair(connect().await, "first");
    let mut blocker = soon("the blocker", first.lock("a")).await.unwrap();
    let story = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..MANAGERS {
        let manager = fair(connect().await, &format!("manager-{number}"));
        let (story, its_looks) = (story.clone(), looks.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..rounds {
                let mut lock = manager.lock("a").await.unwrap();
                let story_so_far = {
                    let mut story = story.lock().unwrap();
                    story.push(number);
                    story.clone()
                };
                for other in (0..MANAGERS).filter(|other| *other != number) {
                    let turns = story_so_far.iter().filter(|taker| **taker == other).count();
                    if turns < rounds {
                        wait_until_queued(&its_looks, other, turns as u64 + 1).await;
                    }
                }
                assert_eq!(lock.release().await, ReleaseOutcome::Released);
            }
        }));
        wait_until_queued(&looks, number, 1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        soon("the release", blocker.release()).await,
        ReleaseOutcome::Released
    );
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    within(Duration::from_secs(180), "the rounds of all", all).await;
    let story = story.lock().unwrap().clone();
    let in_order: Vec<usize> = (0..rounds).flat_map(|_| 0..MANAGERS).collect();
    assert_eq!(story, in_order, "in the order in which they came");
}

/// Until the manager has stood in the queue so many times, and stands there now.
async fn wait_until_queued(store: &SharedStore, manager: usize, times: u64) {
    let place = LeaseName::new(format!("a/candidates/1/manager-{manager}")).unwrap();
    let queued = || async {
        let record = store.get(&place).await.unwrap();
        record.is_some_and(|lease| lease.terms == times && lease.occupancy() == Occupancy::Held)
    };
    eventually_async(PATIENCE, "a place in the queue", queued).await;
}
