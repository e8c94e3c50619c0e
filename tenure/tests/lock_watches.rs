//! Watches of those who wait for a lock: where the store has none to give, and when they end.
use crate::harness::noting::Noting;
use crate::harness::told::{Told, pushing};
use crate::harness::{Site, enduring_lock_timing, lock_timing, pass_on, soon};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::time::{Duration, Instant};
use tenure::contract::{
    Answer, Change, Event, Fault, Interest, Occupancy, Scope, StoreTraits, Watch, WatchEvent,
};
use tenure::{
    Election, Fairness, LeaseName, LeaseStore, LockManager, LockManagerBuilder, LockTimingOptions,
    ReleaseOutcome, SharedStore, StoreError,
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
        pushing(&self.inner)
    }
    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
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

/// A lock that is handed on within another process wakes nobody here, but whoever leads is to hear of its
/// successor.
#[tokio::test]
async fn who_waits_for_a_lock_watches_for_its_end_and_who_campaigns_for_everything() {
    let site = Site::new();
    let holder = site.manager("holder");
    let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
    let store = Arc::new(Noting::over(site.store()));
    for fairness in [Fairness::Barging, Fairness::Fair] {
        let waiter = builder(store.clone(), "waiter")
            .fairness(fairness)
            .build()
            .unwrap();
        let waiting = tokio::spawn(async move { waiter.lock("a").await.map(drop) });
        let watched = || async { !store.ends.lock().unwrap().is_empty() };
        eventually_async(Duration::from_secs(30), "a watch", watched).await;
        soon("the release", lock.release()).await;
        soon("the lock", waiting).await.unwrap().unwrap();
        lock = soon("the lock", holder.lock("a")).await.unwrap();
        let ends = std::mem::take(&mut *store.ends.lock().unwrap());
        assert!(
            ends.contains(&Scope::Name(LeaseName::new("a").unwrap())),
            "{ends:?}"
        );
        assert_eq!(*store.everything.lock().unwrap(), []);
    }
    let election = Election::builder("b", store.clone())
        .candidate("waiter")
        .build()
        .unwrap();
    let leadership = soon("the election", election.campaign()).await.unwrap();
    let watched = || async { !store.everything.lock().unwrap().is_empty() };
    eventually_async(Duration::from_secs(30), "a watch", watched).await;
    assert_eq!(*store.ends.lock().unwrap(), []);
    drop(leadership);
}

/// One who asks again stands behind whoever was behind it: an end that was followed at once counts, too.
#[tokio::test]
async fn who_waits_in_order_watches_every_end_of_whoever_is_before_it() {
    let site = Site::new();
    let fair = |store, candidate| builder(store, candidate).fairness(Fairness::Fair).build();
    let holder = fair(site.store(), "holder").unwrap();
    let lock = soon("the lock", holder.lock("a")).await.unwrap();
    let second = fair(site.store(), "second").unwrap();
    let second = tokio::spawn(async move { second.lock("a").await.map(drop) });
    let queued = || async { site.record("a/candidates/1/second").await.is_some() };
    eventually_async(Duration::from_secs(30), "a place in the queue", queued).await;
    let store = Arc::new(Noting::over(site.store()));
    let third = fair(store.clone(), "third").unwrap();
    let third = tokio::spawn(async move { third.lock("a").await.map(drop) });
    let before = Scope::Name(LeaseName::new("a/candidates/1/second").unwrap());
    let watched = || async { store.every_end.lock().unwrap().contains(&before) };
    eventually_async(Duration::from_secs(30), "a watch", watched).await;
    drop(lock);
    soon("its turn", second).await.unwrap().unwrap();
    soon("its turn", third).await.unwrap().unwrap();
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
        assert_eq!(released, ReleaseOutcome::Released);
        soon("long before the ttl", waiting).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_waits_in_order_looks_while_no_watch_can_be_had() {
    for (fault, asks) in [(Fault::Busy, 3), (Fault::Forbidden, 3), (Fault::Unsupported, 1)] {
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
            assert_eq!(lock.release().await, ReleaseOutcome::Released);
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
        store.until_refused(asks).await;
        let released = soon("the release", lock.release()).await;
        assert_eq!(released, ReleaseOutcome::Released);
        soon("the second", second).await.unwrap().unwrap();
        soon("long before a renewal", third).await.unwrap().unwrap();
    }
}

/// Else the few watches that a process may have would be used up by names that nobody waits for any more.
#[tokio::test]
async fn the_watch_of_a_waiter_that_leaves_while_its_attempt_fails_is_ended() {
    let site = Site::new();
    let holder = site.manager("holder");
    let _lock = soon("the lock", holder.lock("a")).await.unwrap();
    let store = Told::over(site.store());
    let builder = LockManager::builder(store.clone()).candidate("waiter");
    let waiter = builder.timing(lock_timing()).build().unwrap();
    let mut waiting = Box::pin(waiter.lock("a"));
    let hints = tokio::select! {
        _ = &mut waiting => panic!("it is held"),
        hints = store.teller() => hints,
    };
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
    let site = Site::in_memory();
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
    drop(waited.unwrap());
    // Who is not woken looks when what was left by the last renewal is over.
    assert!(released_at.elapsed() < ttl / 2, "{:?}", released_at.elapsed());
}

/// As before: for who has the lock, and for who leaves, nobody tells of its end.
#[tokio::test]
async fn the_watch_of_one_who_waits_no_longer_is_ended() {
    for has_it in [true, false] {
        let site = Site::new();
        let holder = site.manager("holder");
        let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
        let store = Told::over(site.store());
        let builder = LockManager::builder(store.clone()).candidate("waiter");
        let waiter = Arc::new(builder.timing(lock_timing()).build().unwrap());
        let waits = waiter.clone();
        let waiting = tokio::spawn(async move { waits.lock("a").await });
        let hints = store.teller().await;
        if has_it {
            soon("the release", lock.release()).await;
            hints.send(WatchEvent::Gap).await.unwrap();
            lock = soon("the lock", waiting).await.unwrap().unwrap();
        } else {
            waiting.abort();
        }
        soon("its end", hints.closed()).await;
        drop(lock);
    }
}

/// Else each of a few watches that break together would have all looked at that anybody waits for, watched or
/// not.
#[tokio::test]
async fn a_gap_in_the_watch_of_one_lock_has_no_other_looked_at() {
    let site = Site::new();
    let holder = builder(site.store(), "holder").build().unwrap();
    let store = Told::over(site.store());
    let waiter = Arc::new(builder(store.clone(), "waiter").build().unwrap());
    let (mut held, mut hints) = (Vec::new(), Vec::new());
    for name in ["a", "b"] {
        held.push(soon("the lock", holder.lock(name)).await.unwrap());
        let waiter = waiter.clone();
        tokio::spawn(async move { waiter.lock(name).await });
        hints.push(soon("its watch", store.teller()).await);
        let has_looked = || async { store.attempts(name) == 2 };
        eventually_async(Duration::from_secs(30), "a look when the watch began", has_looked).await;
    }
    hints[0].send(WatchEvent::Gap).await.unwrap();
    let has_looked = || async { store.attempts("a") == 3 };
    eventually_async(Duration::from_secs(30), "a look at the one", has_looked).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((store.attempts("a"), store.attempts("b")), (3, 2));
}

#[tokio::test]
async fn whoever_waits_for_more_locks_than_can_be_watched_is_not_left_to_the_ttl() {
    const NAMES: usize = 24;
    let site = Site::new();
    let holder = builder(site.store(), "holder").build().unwrap();
    let waiter = Arc::new(builder(site.store(), "waiter").build().unwrap());
    let mut held = Vec::new();
    for number in 0..NAMES {
        held.push(soon("the lock", holder.lock(format!("{number}"))).await.unwrap());
    }
    let mut events = waiter.events();
    let mut waiting = Vec::new();
    for number in 0..NAMES {
        let waiter = waiter.clone();
        waiting.push(tokio::spawn(
            async move { waiter.lock(format!("{number}")).await },
        ));
    }
    for _ in 0..NAMES {
        let stands_by = |event| matches!(event, Event::Standby { .. });
        while !stands_by(soon("it is held", events.recv()).await.unwrap()) {}
    }
    drop(held);
    for waiting in waiting {
        drop(soon("long before the ttl", waiting).await.unwrap().unwrap());
    }
}

/// A real store whose first watches are refused; each after that tells of something and breaks.
struct Breaking {
    inner: SharedStore,
    begun: AtomicU32,
}

const REFUSED: u32 = 5;

impl LeaseStore for Breaking {
    pass_on!(acquire, renew, release, ask, get, list, examine, run_beside);

    fn traits(&self) -> StoreTraits {
        pushing(&self.inner)
    }
    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let is_refused = self.begun.fetch_add(1, Ordering::SeqCst) < REFUSED;
        let failure = StoreError::not_applied(Fault::Busy, "no watch to give");
        let watch: Box<dyn Watch> = Box::new(Once(Some(WatchEvent::Gap)));
        Box::pin(std::future::ready(if is_refused {
            Err(failure)
        } else {
            Ok(watch)
        }))
    }
}

struct Once(Option<WatchEvent>);

impl Watch for Once {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        let broken = StoreError::not_applied(Fault::Unreachable, "it broke");
        Box::pin(std::future::ready(self.0.take().ok_or(broken)))
    }
}

/// Else a process that lives for long would be deaf for ten seconds whenever a connection breaks.
#[tokio::test]
async fn the_pause_before_a_watch_begins_anew_is_short_again_once_it_has_told_of_something() {
    // With pauses that only grow the last of these would begin after a minute.
    const WATCHES: u32 = 14;
    let site = Site::new();
    let holder = builder(site.store(), "holder").build().unwrap();
    let _lock = soon("the lock", holder.lock("a")).await.unwrap();
    let begun = AtomicU32::new(0);
    let store = Arc::new(Breaking {
        inner: site.store(),
        begun,
    });
    let waiter = builder(store.clone(), "waiter").build().unwrap();
    let waiting = tokio::spawn(async move { waiter.lock("a").await.map(drop) });
    let have_begun = || async { store.begun.load(Ordering::SeqCst) >= WATCHES };
    eventually_async(Duration::from_secs(30), "watches one after another", have_begun).await;
    waiting.abort();
}
