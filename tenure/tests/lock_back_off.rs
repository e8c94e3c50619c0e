//! How soon somebody looks again whom the store does not wake, and has a watch again that broke.
use crate::harness::noting::Noting;
use crate::harness::{Site, pass_on, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tenure::core::{Answer, Fault, Scope, Watch, WatchEvent};
use tenure::{
    LeaseStore, LockManager, LockTiming, LockTimingOptions, ReleaseOutcome, SharedStore, StoreError,
};
use tenure_testkit::eventually_async;

/// How the first watch of a store fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    Breaks,
    Panics,
    PanicsAsItBegins,
}

/// A real store whose first watch fails.
struct FailingOnce {
    inner: SharedStore,
    how: Failing,
    watches: AtomicU32,
    failures: Arc<AtomicU32>,
}

impl LeaseStore for FailingOnce {
    pass_on!(
        traits, acquire, renew, release, ask, get, list, examine, run_beside
    );

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        if self.watches.fetch_add(1, Ordering::SeqCst) > 0 {
            return self.inner.watch(scope);
        }
        let (how, failures) = (self.how, self.failures.clone());
        let mut watch = FailingWatch { how, failures };
        if how == Failing::PanicsAsItBegins {
            drop(watch.next());
        }
        let watch: Box<dyn Watch> = Box::new(watch);
        Box::pin(std::future::ready(Ok(watch)))
    }
}

struct FailingWatch {
    how: Failing,
    failures: Arc<AtomicU32>,
}

impl Watch for FailingWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        self.failures.fetch_add(1, Ordering::SeqCst);
        assert!(self.how == Failing::Breaks, "a watch that panics");
        let broken = StoreError::not_applied(Fault::Unreachable, "it broke");
        Box::pin(std::future::ready(Err(broken)))
    }
}

async fn is_woken_after_a_watch_that(how: Failing, timing: LockTiming) {
    let site = Site::new();
    let holder = LockManager::builder(site.store()).timing(timing).build().unwrap();
    let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
    let failures = Arc::new(AtomicU32::new(0));
    let store = Arc::new(FailingOnce {
        inner: site.store(),
        how,
        watches: AtomicU32::new(0),
        failures: failures.clone(),
    });
    let waiter = LockManager::builder(store).timing(timing).build().unwrap();
    let waiting = tokio::spawn(async move { waiter.lock("a").await.map(drop) });
    let has_failed = async || failures.load(Ordering::SeqCst) > 0;
    eventually_async(Duration::from_secs(20), "a watch that fails", has_failed).await;
    // If not, it looks once more by what came with the watch.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let released = soon("the release", lock.release()).await;
    assert_eq!(released, ReleaseOutcome::Released);
    soon("long before the ttl", waiting).await.unwrap().unwrap();
}

/// Of looks, not of watches: whoever asks for as good as none is still woken by a store that can do so.
#[tokio::test]
async fn a_watch_that_broke_begins_anew_however_long_the_pause_between_looks() {
    for base in [Duration::from_secs(3600), Duration::MAX] {
        let options = LockTimingOptions {
            back_off_base: base,
            back_off_max: base,
            ..LockTimingOptions::new(Duration::from_secs(240))
        };
        is_woken_after_a_watch_that(Failing::Breaks, options.check().unwrap()).await;
    }
}

/// As what else a store is asked: its panic is no answer.
#[tokio::test]
async fn a_watch_that_panics_begins_anew() {
    for how in [Failing::PanicsAsItBegins, Failing::Panics] {
        let timing = LockTimingOptions::new(Duration::from_secs(240)).check().unwrap();
        is_woken_after_a_watch_that(how, timing).await;
    }
}

/// A real store that has no watch to give now.
struct Refusing {
    inner: SharedStore,
    refused: AtomicU32,
}

impl LeaseStore for Refusing {
    pass_on!(
        traits, acquire, renew, release, ask, get, list, examine, run_beside
    );

    fn watch<'a>(&'a self, _scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.refused.fetch_add(1, Ordering::SeqCst);
        let refusal = StoreError::not_applied(Fault::Busy, "too many are open");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

#[tokio::test]
async fn a_watch_that_is_refused_is_asked_for_ever_more_seldom() {
    const ASKS: u32 = 8;
    let site = Site::new();
    let options = LockTimingOptions {
        back_off_base: Duration::from_millis(20),
        ..LockTimingOptions::new(Duration::from_secs(240))
    };
    let timing = options.check().unwrap();
    let holder = LockManager::builder(site.store()).timing(timing).build().unwrap();
    let _lock = soon("the lock", holder.lock("a")).await.unwrap();
    let store = Arc::new(Refusing {
        inner: site.store(),
        refused: AtomicU32::new(0),
    });
    let waiter = LockManager::builder(store.clone())
        .timing(timing)
        .build()
        .unwrap();
    let began = Instant::now();
    let waiting = tokio::spawn(async move { waiter.lock("a").await.map(drop) });
    let are_refused = async || store.refused.load(Ordering::SeqCst) >= ASKS;
    eventually_async(Duration::from_secs(30), "one after another", are_refused).await;
    // Twice as long each time, so that the pauses together are all but one of the next.
    let pauses = options.back_off_base * (2_u32.pow(ASKS - 1) - 1);
    assert!(began.elapsed() >= pauses, "{:?}", began.elapsed());
    waiting.abort();
}

/// A manager has so many watches at a time, and keeps them for a while when nobody needs them.
#[tokio::test]
async fn a_watch_that_nobody_needs_makes_room_for_one_that_somebody_does() {
    const WATCHES: usize = 16;
    let site = Site::new();
    let timing = LockTimingOptions::new(Duration::from_secs(240)).check().unwrap();
    let holder = LockManager::builder(site.store()).timing(timing).build().unwrap();
    let mut held = Vec::new();
    for number in 0..=WATCHES {
        held.push(soon("a lock", holder.lock(number.to_string())).await.unwrap());
    }
    let store = Arc::new(Noting::over(site.store()));
    let builder = LockManager::builder(store.clone()).timing(timing);
    let waiter = Arc::new(builder.build().unwrap());
    let wait_for = |number: usize| {
        let waiter = waiter.clone();
        tokio::spawn(async move { waiter.lock(number.to_string()).await.map(drop) })
    };
    let waiting: Vec<_> = (0..WATCHES).map(wait_for).collect();
    let are_watched = async |count| store.ends.lock().unwrap().len() >= count;
    eventually_async(Duration::from_secs(20), "a watch for each", async || {
        are_watched(WATCHES).await
    })
    .await;
    for waiting in waiting {
        waiting.abort();
        drop(waiting.await);
    }
    let last = wait_for(WATCHES);
    eventually_async(Duration::from_secs(20), "a watch for the last", async || {
        are_watched(WATCHES + 1).await
    })
    .await;
    last.abort();
}
