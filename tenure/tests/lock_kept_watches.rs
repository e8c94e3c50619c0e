//! The watch of the place before, which a process keeps from turn to turn: what becomes of one that is of no
//! use any more.
use crate::harness::told::pushing;
use crate::harness::{Site, pass_on, soon};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::contract::{
    Acquire, Acquired, Answer, Fault, Interest, Occupancy, Scope, StoreTraits, Watch, WatchEvent,
};
use tenure::{Fairness, LeaseStore, LockManager, LockTimingOptions, ReleaseOutcome, SharedStore, StoreError};
use tenure_testkit::eventually_async;
use tokio::sync::oneshot;

/// How a watch ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It breaks, and whoever reads it begins another.
    Breaks,
    /// What reads it ends with it, as with a runtime that ends.
    TakesItsReaderAlong,
}

/// A real store of whose watches of places the first ends when the test says so, and the one that follows it
/// begins never where that broke.
struct Ending {
    inner: SharedStore,
    how: End,
    end: Mutex<Option<oneshot::Receiver<()>>>,
    begun: AtomicU32,
    attempts: AtomicU32,
}

impl Ending {
    /// The store, and what ends its first watch.
    fn over(inner: SharedStore, how: End) -> (Arc<Self>, oneshot::Sender<()>) {
        let (end, ended) = oneshot::channel();
        let store = Self {
            inner,
            how,
            end: Mutex::new(Some(ended)),
            begun: AtomicU32::new(0),
            attempts: AtomicU32::new(0),
        };
        (Arc::new(store), end)
    }

    async fn until_watched(&self, times: u32) {
        let begun = async || self.begun.load(Ordering::SeqCst) >= times;
        eventually_async(Duration::from_secs(60), "a watch", begun).await;
    }

    async fn until_attempted(&self) {
        let attempted = async || self.attempts.load(Ordering::SeqCst) > 0;
        eventually_async(Duration::from_secs(60), "an attempt at the lock", attempted).await;
    }
}

impl LeaseStore for Ending {
    pass_on!(renew, release, ask, get, list, examine, run_beside);

    fn traits(&self) -> StoreTraits {
        pushing(&self.inner)
    }
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        if request.name.as_str() == "a" {
            self.attempts.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.acquire(request)
    }
    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        if interest != Interest::EveryEnd {
            return self.inner.watch(scope, interest);
        }
        Box::pin(async move {
            match (self.begun.fetch_add(1, Ordering::SeqCst), self.how) {
                (0, how) => {
                    let end = self.end.lock().unwrap().take();
                    let end = end.expect("it begins once");
                    let watch = self.inner.watch(scope, interest).await?;
                    Ok(Box::new(EndingWatch { watch, how, end }) as Box<dyn Watch>)
                }
                // What it would be of use for is over before the store answers.
                (1, End::Breaks) => std::future::pending().await,
                _ => self.inner.watch(scope, interest).await,
            }
        })
    }
}

struct EndingWatch {
    watch: Box<dyn Watch>,
    how: End,
    end: oneshot::Receiver<()>,
}

impl Watch for EndingWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async {
            tokio::select! {
                biased;
                _ = &mut self.end => Err(StoreError::not_applied(Fault::Unreachable, "it broke")),
                told = self.watch.next() => told,
            }
        })
    }
}

impl Drop for EndingWatch {
    fn drop(&mut self) {
        assert!(
            self.how == End::Breaks || std::thread::panicking(),
            "a watch that takes its reader along"
        );
    }
}

/// With no beat and no look that would show it before the test gives up.
fn fair(store: SharedStore, candidate: &str) -> Arc<LockManager> {
    let timing = LockTimingOptions::new(Duration::from_secs(3_600));
    let builder = LockManager::builder(store).candidate(candidate);
    let builder = builder.fairness(Fairness::Fair).timing(timing.check().unwrap());
    Arc::new(builder.build().unwrap())
}

/// Until this one has a place that is above the token, and its token.
async fn placed(site: &Site, candidate: &str, above: u64) -> u64 {
    let name = format!("a/candidates/1/{candidate}");
    eventually_async(Duration::from_secs(60), "a place in the queue", async || {
        let place = site.record(&name).await.ok_or("none")?;
        let is_new = place.occupancy() == Occupancy::Held && place.token.number() > above;
        is_new.then_some(place.token.number()).ok_or("an earlier one")
    })
    .await
}

/// More than take the lock in one turn.
const WAITERS: usize = 12;

/// Takes the lock for a moment: for longer than more of its process may follow in its turn.
async fn has_had(manager: Arc<LockManager>) {
    let mut lock = manager.lock("a").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(lock.release().await, ReleaseOutcome::Released);
}

/// It broke while the turn that left it waited for the lock: what is done in its place comes ever more
/// seldom.
#[tokio::test]
async fn a_watch_that_broke_while_it_was_kept_is_not_taken_by_the_next_turn() {
    let site = Site::new();
    let holder = site.manager("holder");
    let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
    let other = fair(site.store(), "other");
    let ahead = soon("the first place", other.turn("a")).await.unwrap();
    let place = placed(&site, "other", 0).await;
    let (store, end) = Ending::over(site.store(), End::Breaks);
    let one = fair(store.clone(), "one");
    let mut waiting = vec![tokio::spawn(has_had(one.clone()))];
    // It waits for the place before its own.
    store.until_watched(1).await;
    waiting.extend((1..WAITERS).map(|_| tokio::spawn(has_had(one.clone()))));
    // The other is before the next turn of this one, too.
    drop(ahead);
    let again = tokio::spawn(async move { other.turn("a").await.map(|turn| (turn, other)) });
    placed(&site, "other", place).await;
    // It has had the first place, and waits for the lock.
    store.until_attempted().await;
    end.send(()).unwrap();
    store.until_watched(2).await;
    soon("the release", lock.release()).await;
    // Those who are left over have their turn after the other's.
    store.until_watched(3).await;
    drop(soon("the first place", again).await.unwrap().unwrap());
    for waiting in waiting {
        soon("its turn", waiting).await.unwrap();
    }
}

/// Nobody tells anything by it any more, whatever runtime that was.
#[tokio::test]
async fn a_watch_of_a_place_that_nobody_reads_any_more_is_begun_anew() {
    let site = Site::new();
    let other = fair(site.store(), "other");
    let ahead = soon("the first place", other.turn("a")).await.unwrap();
    let (store, end) = Ending::over(site.store(), End::TakesItsReaderAlong);
    let one = fair(store.clone(), "one");
    let waiting = tokio::spawn(async move { one.lock("a").await.map(drop) });
    store.until_watched(1).await;
    end.send(()).unwrap();
    store.until_watched(2).await;
    drop(ahead);
    soon("its turn", waiting).await.unwrap().unwrap();
}
