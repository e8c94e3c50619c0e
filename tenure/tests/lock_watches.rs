//! Watches of those who wait for a lock: where the store has none to give, and when they end.
use crate::harness::{Site, enduring_lock_timing, lock_timing, pass_on, soon};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc as blocking};
use std::time::{Duration, Instant};
use tenure::core::{
    Acquire, Acquired, Answer, Change, Fault, Occupancy, Scope, StoreTraits, Watch, WatchEvent, WatchSource,
};
use tenure::{
    Fairness, LeaseName, LeaseStore, LockManager, LockManagerBuilder, LockRelease, LockTimingOptions,
    SharedStore, StoreError,
};
use tenure_testkit::eventually_async;
use tokio::sync::mpsc;

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

/// A real store whose watches say what a test has them say, and one of whose attempts fails when the test lets it.
struct Told {
    inner: SharedStore,
    /// Hints for whoever watches last, who keeps its end.
    hints: Mutex<Option<mpsc::Sender<WatchEvent>>>,
    /// Says that the attempt has begun, and waits until it is to fail; the thread of the manager is held up meanwhile.
    attempt: Mutex<Option<(blocking::Sender<()>, blocking::Receiver<()>)>>,
}

impl LeaseStore for Told {
    pass_on!(renew, release, ask, get, list, examine, run_beside);

    fn traits(&self) -> StoreTraits {
        StoreTraits {
            watch: WatchSource::Push,
            ..self.inner.traits()
        }
    }
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let Some((begun, failing)) = self.attempt.lock().unwrap().take() else {
            return self.inner.acquire(request);
        };
        begun.send(()).unwrap();
        failing.recv().unwrap();
        let failure = StoreError::not_applied(Fault::Busy, "told to fail");
        Box::pin(std::future::ready(Err(failure)))
    }
    fn watch<'a>(&'a self, _scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let (hints, told) = mpsc::channel(1);
        *self.hints.lock().unwrap() = Some(hints);
        Box::pin(std::future::ready(Ok(Box::new(Telling(told)) as Box<dyn Watch>)))
    }
}

struct Telling(mpsc::Receiver<WatchEvent>);

impl Watch for Telling {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async { Ok(self.0.recv().await.expect("the store keeps the other end")) })
    }
}

/// Else the few watches that a process may have would be used up by names that nobody waits for any more.
#[tokio::test]
async fn the_watch_of_a_waiter_that_leaves_while_its_attempt_fails_is_ended() {
    let site = Site::new();
    let holder = site.long_manager("holder");
    let _lock = soon("the lock", holder.lock("a")).await.unwrap();
    let store = Arc::new(Told {
        inner: site.store(),
        hints: Mutex::default(),
        attempt: Mutex::default(),
    });
    let builder = LockManager::builder(store.clone()).candidate("waiter");
    let waiter = builder.timing(lock_timing()).build().unwrap();
    let mut waiting = Box::pin(waiter.lock("a"));
    let is_watched = || async { store.hints.lock().unwrap().is_some() };
    tokio::select! {
        _ = &mut waiting => panic!("it is held"),
        () = eventually_async(Duration::from_secs(30), "a watch", is_watched) => {}
    }
    let hints = store.hints.lock().unwrap().clone().unwrap();
    // It leaves when the attempt is on its way, and the driver hears first that this has failed.
    let (begun, has_begun) = blocking::channel();
    let (fail, failing) = blocking::channel();
    *store.attempt.lock().unwrap() = Some((begun, failing));
    let look = WatchEvent::Changed {
        name: LeaseName::new("a").unwrap(),
        change: Change::Vacated,
        token: None,
    };
    hints.send(look).await.unwrap();
    has_begun.recv().unwrap();
    drop(waiting);
    fail.send(()).unwrap();
    // After a ttl, as any that nobody needs.
    soon("its end", hints.closed()).await;
    drop(waiter);
}

/// It was left running for a ttl, in case that somebody waits again; and somebody does.
#[tokio::test]
async fn a_watch_that_is_needed_again_is_not_ended_for_having_been_idle() {
    let site = Site::new();
    let timing = enduring_lock_timing();
    let manager = |id| site.manager_builder(id).timing(timing).build().unwrap();
    let (theirs, ours) = (manager("theirs"), manager("ours"));
    let held = soon("the lock", theirs.lock("a")).await.unwrap();
    let (waited, ()) = tokio::join!(soon("our turn", ours.lock("a")), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(held);
    });
    drop(waited.unwrap());
    let held = soon("the lock again", theirs.lock("a")).await.unwrap();
    let ttl = timing.lease().ttl().duration();
    let (waited, released_at) = tokio::join!(soon("our turn", ours.lock("a")), async {
        // Past the time for which it is kept idle, and its next look.
        tokio::time::sleep(ttl + 4 * timing.lease().renew_every()).await;
        drop(held);
        Instant::now()
    });
    waited.unwrap();
    // Who is not woken looks when what was left by the last renewal is over.
    assert!(released_at.elapsed() < ttl / 2, "{:?}", released_at.elapsed());
}
