//! Many locks and many waiters, in SQLite.
use crate::harness::{Site, enduring_lock_timing, many, pass_on, soon};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::StoreTraits;
use tenure::{Event, LeaseStore, LockManager, SharedStore};

/// A store that extends one lease with each request.
struct OneAtATime {
    inner: SharedStore,
}

impl LeaseStore for OneAtATime {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            batch_max: NonZero::<usize>::MIN,
            ..self.inner.traits()
        }
    }

    pass_on!(
        acquire, renew, release, ask, get, list, watch, examine, run_beside
    );
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_sqlite_and_one_that_is_lost_disturbs_none() {
    let site = Site::new();
    let file = site.file();
    let tamper = || async move {
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        let changed = connection
            .execute(
                "UPDATE lease SET token = token + 1 WHERE name = ?1",
                [many::VICTIM],
            )
            .unwrap();
        assert_eq!(changed, 1);
    };
    let ttl = Duration::from_secs(20);
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(site.store(), ttl, tamper).await;
}

/// What is not sent waits until it is given up, several beats later.
#[tokio::test]
async fn a_beat_of_more_locks_than_one_request_takes_extends_them_all() {
    const LOCKS: usize = 8;
    const BEATS: u32 = 4;
    let site = Site::in_memory();
    let store = Arc::new(OneAtATime { inner: site.store() });
    let manager = LockManager::builder(store)
        .timing(enduring_lock_timing())
        .build()
        .unwrap();
    let mut events = manager.events();
    let mut locks = Vec::new();
    for number in 0..LOCKS {
        locks.push(
            soon("a lock", manager.lock(format!("lock/{number}")))
                .await
                .unwrap(),
        );
    }
    let mut extended = BTreeMap::new();
    while extended.len() < LOCKS || extended.values().any(|beats| *beats < BEATS) {
        if let Event::Renewed { name, .. } = soon("the next beat", events.recv()).await.unwrap() {
            *extended.entry(name).or_insert(0) += 1;
        }
        // All in the same beats, however late those are.
        assert!(extended.values().all(|beats| *beats <= 2 * BEATS), "{extended:?}");
    }
    drop(locks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_sqlite() {
    let site = Site::new();
    many::sixty_four_tasks_lose_no_update([site.store(), site.store(), site.store(), site.store()]).await;
}
