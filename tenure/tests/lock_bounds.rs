//! How many locks a manager takes at once, and what keeps it from taking more.
use crate::harness::counting::Counting;
use crate::harness::{Site, long_lock_timing, soon};
use std::sync::Arc;
use tenure::core::Fault;
use tenure::{LockError, LockManager};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_lock_that_was_dropped_makes_room_for_the_next_at_once() {
    let site = Site::new();
    let manager = site.manager_builder("a").locks_max(1).build().unwrap();
    for round in 0..100 {
        drop(soon("a lock", manager.lock(format!("{round}"))).await.unwrap());
        drop(
            soon("a look", manager.try_lock(format!("look/{round}")))
                .await
                .unwrap(),
        );
    }
    let _held = soon("a lock", manager.lock("held")).await.unwrap();
    let refusal = soon("one more", manager.lock("more")).await.unwrap_err();
    assert!(
        matches!(refusal, LockError::TooMany { locks_max: 1, .. }),
        "{refusal}"
    );
}

/// As many as a manager begins to take at once, and their releases are not answered.
#[tokio::test]
async fn names_whose_release_hangs_keep_no_other_lock_waiting() {
    const NAMES: usize = 40;
    let site = Site::new();
    let store = Arc::new(Counting::new(site.store()));
    let manager = LockManager::builder(store.clone()).timing(long_lock_timing());
    let manager = Arc::new(manager.build().unwrap());
    let mut locks = Vec::new();
    for number in 0..NAMES {
        locks.push(soon("a lock", manager.lock(format!("{number}"))).await.unwrap());
    }
    store.releasing.forget_permits(Semaphore::MAX_PERMITS);
    drop(locks);
    let mut waiting = Vec::new();
    for number in 1..NAMES {
        let manager = manager.clone();
        waiting.push(tokio::spawn(
            async move { manager.lock(format!("{number}")).await },
        ));
    }
    tokio::task::yield_now().await;
    // Before one of their releases is given up.
    soon("another name", manager.lock("another")).await.unwrap();
    match soon("a look at a name whose release hangs", manager.try_lock("0")).await {
        Err(LockError::Store(error)) => assert_eq!(error.fault, Fault::TimedOut, "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(
        waiting.iter().all(|waiting| !waiting.is_finished()),
        "each waits for its release"
    );
    store.releasing.add_permits(Semaphore::MAX_PERMITS / 2);
    for lock in waiting {
        soon("who waited", lock).await.unwrap().unwrap();
    }
}
