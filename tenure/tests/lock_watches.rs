//! Waiting for a lock where the store wakes, but has no watch to give.
use crate::harness::{Site, pass_on, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure::core::{Answer, Fault, Occupancy, Scope, StoreTraits, Watch, WatchSource};
use tenure::{
    Fairness, LeaseStore, LockManager, LockManagerBuilder, LockRelease, LockTimingOptions, SharedStore,
    StoreError,
};
use tenure_testkit::eventually_async;

/// A real store that could wake, and refuses every watch: too many are open, or its role may not.
struct Unwatched {
    inner: SharedStore,
    fault: Fault,
    refused: AtomicU32,
}

impl Unwatched {
    fn over(inner: SharedStore, fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fault,
            refused: AtomicU32::new(0),
        })
    }

    /// Until somebody waits who has no watch.
    async fn until_refused(&self, times: u32) {
        let refused = || async { self.refused.load(Ordering::SeqCst) >= times };
        eventually_async(Duration::from_secs(30), "a watch that is refused", refused).await;
    }
}

impl LeaseStore for Unwatched {
    pass_on!(acquire, renew, release, ask, get, list, examine, run_beside);

    fn traits(&self) -> StoreTraits {
        StoreTraits {
            watch: WatchSource::Push,
            ..self.inner.traits()
        }
    }
    fn watch<'a>(&'a self, _scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.refused.fetch_add(1, Ordering::SeqCst);
        let refusal = StoreError::not_applied(self.fault, "no watch to give");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// So long that whoever waits for the rest of it is told from whoever looks.
const TTL: Duration = Duration::from_secs(240);

fn builder(store: SharedStore, candidate: &str) -> LockManagerBuilder {
    LockManager::builder(store)
        .candidate(candidate)
        .timing(LockTimingOptions::new(TTL).check().unwrap())
}

#[tokio::test]
async fn who_waits_for_a_lock_looks_while_no_watch_can_be_had() {
    for fault in [Fault::Busy, Fault::Forbidden] {
        let site = Site::new();
        let holder = builder(site.store(), "holder").build().unwrap();
        let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
        let store = Unwatched::over(site.store(), fault);
        let waiter = builder(store.clone(), "waiter").build().unwrap();
        let waiting = tokio::spawn(async move { waiter.lock("a").await.map(drop) });
        store.until_refused(3).await;
        let released = soon("the release", lock.release()).await;
        assert_eq!(released, LockRelease::Released);
        soon("long before the ttl", waiting).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_waits_in_order_looks_while_no_watch_can_be_had() {
    for fault in [Fault::Busy, Fault::Forbidden] {
        let site = Site::new();
        let fair = |store, candidate| {
            let builder = builder(store, candidate).fairness(Fairness::Fair);
            builder.build().unwrap()
        };
        let holder = fair(site.store(), "holder");
        let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
        let second = fair(site.store(), "second");
        let second = tokio::spawn(async move {
            let mut lock = second.lock("a").await?;
            assert_eq!(lock.release().await, LockRelease::Released);
            Ok::<(), tenure::LockError>(())
        });
        let queued = || async {
            let place = site.record("a/candidates/1/second").await;
            place.is_some_and(|place| place.occupancy() == Occupancy::Held)
        };
        eventually_async(Duration::from_secs(30), "a place in the queue", queued).await;
        let store = Unwatched::over(site.store(), fault);
        let third = fair(store.clone(), "third");
        let third = tokio::spawn(async move { third.lock("a").await.map(drop) });
        // It has its place, and waits for the one before it.
        store.until_refused(3).await;
        let released = soon("the release", lock.release()).await;
        assert_eq!(released, LockRelease::Released);
        soon("the second", second).await.unwrap().unwrap();
        soon("long before a renewal", third).await.unwrap().unwrap();
    }
}
