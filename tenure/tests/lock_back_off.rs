//! How soon somebody looks again whom the store does not wake, and has a watch again that broke.
use crate::harness::noting::Noting;
use crate::harness::{Site, pass_on, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tenure::contract::{Acquire, Acquired, Answer, Event, Fault, Interest, Lease, Scope, Watch, WatchEvent};
use tenure::{
    LeaseName, LeaseStore, LockManager, LockTiming, LockTimingOptions, ReleaseOutcome, SharedStore,
    StoreError,
};
use tenure_testkit::eventually_async;
use tokio::sync::watch;

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

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        if self.watches.fetch_add(1, Ordering::SeqCst) > 0 {
            return self.inner.watch(scope, interest);
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

    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
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

/// A real store that is away when a test says so: its attempts fail and its watches break.
struct Away {
    inner: SharedStore,
    is_away: watch::Sender<bool>,
    watches: AtomicU32,
    broken: Arc<AtomicU32>,
}

fn away() -> StoreError {
    StoreError::not_applied(Fault::Unreachable, "it is away")
}

impl LeaseStore for Away {
    pass_on!(traits, renew, release, ask, get, list, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        match *self.is_away.borrow() {
            true => Box::pin(std::future::ready(Err(away()))),
            false => self.inner.acquire(request),
        }
    }

    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let begun: Result<Box<dyn Watch>, _> = match *self.is_away.borrow() {
            true => Err(away()),
            false => {
                self.watches.fetch_add(1, Ordering::SeqCst);
                Ok(Box::new(BreaksWhenAway {
                    is_away: self.is_away.subscribe(),
                    broken: self.broken.clone(),
                }))
            }
        };
        Box::pin(std::future::ready(begun))
    }
}

struct BreaksWhenAway {
    is_away: watch::Receiver<bool>,
    broken: Arc<AtomicU32>,
}

impl Watch for BreaksWhenAway {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async move {
            let _gone_as_well = self.is_away.wait_for(|is_away| *is_away).await;
            self.broken.fetch_add(1, Ordering::SeqCst);
            Err(away())
        })
    }
}

/// A release just after an outage, when people hand over what they had put off, is heard.
#[tokio::test]
async fn a_watch_that_broke_is_back_when_the_store_is_and_not_when_its_pause_is_over() {
    /// That is all of it: no watch is begun anew before.
    const PAUSE: Duration = Duration::from_secs(10);
    const ROUNDS_MAX: u32 = 5;
    let site = Site::new();
    let options = LockTimingOptions {
        back_off_base: Duration::from_secs(3600),
        back_off_max: Duration::from_secs(3600),
        ..LockTimingOptions::new(Duration::from_secs(240))
    };
    let timing = options.check().unwrap();
    let holder = LockManager::builder(site.store()).timing(timing).build().unwrap();
    let _lock = soon("the lock", holder.lock("a")).await.unwrap();
    let store = Arc::new(Away {
        inner: site.store(),
        is_away: watch::Sender::new(false),
        watches: AtomicU32::new(0),
        broken: Arc::default(),
    });
    let waiter = LockManager::builder(store.clone()).timing(timing).build();
    let waiter = Arc::new(waiter.unwrap());
    let waits = waiter.clone();
    let waiting = tokio::spawn(async move { waits.lock("a").await.map(drop) });
    for round in 1..=ROUNDS_MAX {
        let is_watched = async || store.watches.load(Ordering::SeqCst) >= round;
        eventually_async(Duration::from_secs(60), "a watch", is_watched).await;
        let broke = Instant::now();
        store.is_away.send_replace(true);
        let is_broken = async || store.broken.load(Ordering::SeqCst) >= round;
        eventually_async(Duration::from_secs(60), "its end", is_broken).await;
        assert!(soon("a refusal", waiter.try_lock("b")).await.is_err());
        store.is_away.send_replace(false);
        drop(soon("another lock", waiter.try_lock("b")).await.unwrap());
        let is_back = async || store.watches.load(Ordering::SeqCst) > round;
        eventually_async(Duration::from_secs(60), "a watch once more", is_back).await;
        // On a machine that stood still for so long, once more.
        if broke.elapsed() < PAUSE {
            waiting.abort();
            return;
        }
    }
    panic!("no sooner than its pause was over, in {ROUNDS_MAX} rounds");
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

/// A real store that cannot be looked at for a while, as at whose a lock is.
struct Unseen {
    inner: SharedStore,
    is_seen: AtomicBool,
    looks: AtomicU32,
}

impl Unseen {
    fn over(site: &Site) -> Arc<Self> {
        Arc::new(Self {
            inner: site.store(),
            is_seen: AtomicBool::new(false),
            looks: AtomicU32::new(0),
        })
    }

    /// A manager that looks at whose a lock is.
    fn manager(self: &Arc<Self>, timing: LockTiming) -> Arc<LockManager> {
        let builder = LockManager::builder(self.clone()).owner_tag("billing");
        Arc::new(builder.timing(timing).build().unwrap())
    }
}

impl LeaseStore for Unseen {
    pass_on!(
        traits, acquire, renew, release, ask, list, watch, examine, run_beside
    );

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        if self.is_seen.load(Ordering::SeqCst) {
            return self.inner.get(name);
        }
        let refusal = StoreError::not_applied(Fault::Unreachable, "no connection");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// As attempts are, and not in step with those of others.
#[tokio::test]
async fn looks_at_whose_a_lock_is_are_made_ever_more_seldom_while_they_fail() {
    const LOOKS: u32 = 9;
    let site = Site::new();
    let store = Unseen::over(&site);
    let timing = LockTimingOptions::new(Duration::from_millis(1_500))
        .check()
        .unwrap();
    let manager = store.manager(timing);
    let mut events = manager.events();
    let began = Instant::now();
    let waits = manager.clone();
    let waiting = tokio::spawn(async move { waits.lock("a").await.map(drop) });
    let (shortest, mut pauses) = (timing.lease().retry_every(), Vec::new());
    while pauses.len() < LOOKS as usize {
        if let Event::AttemptFailed { retry_in, .. } = soon("a failure", events.recv()).await.unwrap() {
            pauses.push(retry_in);
        }
    }
    let took = began.elapsed();
    let (told, kept) = (&pauses[1..], &pauses[..LOOKS as usize - 1]);
    assert!(took >= kept.iter().sum::<Duration>(), "{took:?}: {pauses:?}");
    assert!(pauses[0] == shortest && told.iter().all(|pause| *pause >= shortest));
    // Drawn from up to thirty times as long: a thousand such tests have none that is so unlucky.
    let longest = pauses.iter().max().unwrap();
    assert!(*longest > shortest * 4, "{pauses:?}");
    store.is_seen.store(true, Ordering::SeqCst);
    soon("the lock, after a pause", waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn whoever_comes_in_the_pause_after_a_failed_look_of_one_who_left_looks_at_once() {
    let site = Site::new();
    let store = Unseen::over(&site);
    // With this ttl a pause is 10 s.
    let timing = LockTimingOptions::new(Duration::from_secs(3_600))
        .check()
        .unwrap();
    let pause = timing.lease().retry_every();
    let (manager, began) = (store.manager(timing), Instant::now());
    let mut events = manager.events();
    let waits = manager.clone();
    let waiting = tokio::spawn(async move { waits.lock("a").await.map(drop) });
    let failure = soon("a failure", events.recv()).await.unwrap();
    assert!(matches!(failure, Event::AttemptFailed { .. }), "{failure:?}");
    waiting.abort();
    drop(waiting.await);
    store.is_seen.store(true, Ordering::SeqCst);
    drop(soon("one look", manager.try_lock("a")).await.unwrap());
    assert!(began.elapsed() < pause, "{:?}", began.elapsed());
}
