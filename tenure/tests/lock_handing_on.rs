//! A lock that goes from one holder to the next within a process.
use crate::harness::counting::Counting;
use crate::harness::{LONG_BEFORE, PATIENCE, Site, long_lock_timing, pass_on, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure::contract::{
    Acquire, Acquired, Answer, Fault, Interest, Occupancy, Release, Released, Scope, Watch, WatchEvent,
};
use tenure::{
    Authority, Cause, FencingToken, LeaseStore, LockManager, LockManagerBuilder, ReleaseOutcome, SharedStore,
    StoreError,
};
use tenure_testkit::eventually_async;
use tokio::sync::Semaphore;

/// A manager over a store that counts.
fn counted(site: &Site) -> (Arc<Counting>, Arc<LockManager>) {
    let (store, manager) = to_be_counted(site);
    (store, Arc::new(manager.build().unwrap()))
}

fn to_be_counted(site: &Site) -> (Arc<Counting>, LockManagerBuilder) {
    let store = Arc::new(Counting::new(site.store()));
    let manager = LockManager::builder(store.clone())
        .candidate("a")
        .timing(long_lock_timing());
    (store, manager)
}

/// Tasks that each wait for the lock, have it once for so long, and tell its token.
fn waiters(
    manager: &Arc<LockManager>,
    count: u32,
    held_for: Duration,
) -> Vec<tokio::task::JoinHandle<FencingToken>> {
    let wait = |_| {
        let manager = manager.clone();
        tokio::spawn(async move {
            let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
            assert!(matches!(lock.authority(), Authority::Held { .. }));
            if !held_for.is_zero() {
                tokio::time::sleep(held_for).await;
            }
            assert_eq!(
                soon("the release", lock.release()).await,
                ReleaseOutcome::Released
            );
            lock.token()
        })
    };
    (0..count).map(wait).collect()
}

async fn until_all_wait(manager: &LockManager, count: u64) {
    while manager.locks() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How often twenty of one process release the lock who have it one after another, each for so long.
async fn releases_of_twenty(held_for: Duration) -> u32 {
    let site = Site::in_memory();
    let (store, manager) = counted(&site);
    let mut first = soon("the lock", manager.lock("a")).await.unwrap();
    let tasks = waiters(&manager, 19, held_for);
    until_all_wait(&manager, 20).await;
    assert_eq!(
        soon("the release", first.release()).await,
        ReleaseOutcome::Released
    );
    let mut before = first.token();
    for task in tasks {
        let token = task.await.unwrap();
        assert!(token > before, "{token} after {before}");
        before = token;
    }
    assert_eq!(store.acquisitions(), 20, "one for each");
    assert_eq!(site.record("a").await.unwrap().occupancy(), Occupancy::Vacant);
    store.releases()
}

/// Eight times in a row, then it is released for others to try; and when nobody waits any more.
#[tokio::test]
async fn whoever_waits_here_takes_the_lock_with_one_request_and_a_token_of_its_own() {
    // Eight of these take longer than the time in which it is handed on more often.
    assert_eq!(releases_of_twenty(Duration::from_millis(5)).await, 3);
}

/// Where each has it for a moment. A slow machine may be late for that, but not every time.
#[tokio::test]
async fn a_lock_that_is_kept_for_a_moment_is_handed_on_more_often() {
    const TRIES_MAX: u32 = 20;
    for _ in 0..TRIES_MAX {
        let releases = releases_of_twenty(Duration::ZERO).await;
        assert!((1..=3).contains(&releases), "{releases}");
        if releases < 3 {
            return;
        }
    }
    panic!("released after every eight hand-overs, {TRIES_MAX} times");
}

/// Whose it is was looked at by the first of them, and after each release by the next: another application
/// may have come between.
#[tokio::test]
async fn a_lock_that_is_handed_on_is_not_looked_at_again_for_its_owner_tag() {
    let site = Site::in_memory();
    let (store, manager) = to_be_counted(&site);
    let manager = Arc::new(manager.owner_tag("billing").build().unwrap());
    let mut first = soon("the lock", manager.lock("a")).await.unwrap();
    let tasks = waiters(&manager, 19, Duration::ZERO);
    until_all_wait(&manager, 20).await;
    assert_eq!(
        soon("the release", first.release()).await,
        ReleaseOutcome::Released
    );
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.acquisitions(), 20, "one for each");
    assert_eq!(store.looks(), store.releases(), "one before each row");
}

#[tokio::test]
async fn a_waiter_who_leaves_in_the_middle_of_it_leaves_nothing_held() {
    let site = Site::new();
    let (_store, manager) = counted(&site);
    for round in 0..50 {
        let mut first = soon("the lock", manager.lock("a")).await.unwrap();
        let waiter = waiters(&manager, 1, Duration::ZERO).remove(0);
        until_all_wait(&manager, 2).await;
        let release = tokio::spawn(async move { first.release().await });
        // Before, in, and after the request by which it would have the lock.
        tokio::time::sleep(Duration::from_micros(40 * round)).await;
        waiter.abort();
        let released = soon("the release", release).await.unwrap();
        assert_eq!(released, ReleaseOutcome::Released, "round {round}");
        drop(waiter.await);
        let vacant = async {
            while site.record("a").await.unwrap().occupancy() == Occupancy::Held {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // Or the next round would wait for its end.
        let in_time = tokio::time::timeout(LONG_BEFORE, vacant).await;
        in_time.unwrap_or_else(|_| panic!("round {round}: still held"));
    }
}

#[tokio::test]
async fn a_holder_who_is_asked_to_end_releases_for_others() {
    let site = Site::new();
    let (store, manager) = counted(&site);
    let mut first = soon("the lock", manager.lock("a")).await.unwrap();
    let waiter = waiters(&manager, 1, Duration::ZERO).remove(0);
    until_all_wait(&manager, 2).await;
    let ask = tenure::contract::Ask {
        name: first.name().clone(),
        token: first.token(),
    };
    site.store().ask(&ask).await.unwrap();
    soon("the wish", first.doubted()).await;
    assert_eq!(
        soon("the release", first.release()).await,
        ReleaseOutcome::Released
    );
    soon("the waiter", waiter).await.unwrap();
    assert_eq!(store.releases(), 2, "each released its own");
}

/// As an operator ends a term.
async fn end_by_force(site: &Site, name: &str) {
    let lease = site.record(name).await.unwrap();
    let force = Release {
        name: lease.name,
        incarnation: lease.holder.incarnation,
        token: lease.token,
        attempt: lease.attempt,
    };
    let released = site.store().release(&[force]).await;
    assert!(
        matches!(released.as_slice(), [Ok(Released::Vacated)]),
        "{released:?}"
    );
}

#[tokio::test]
async fn a_lock_that_another_had_meanwhile_is_not_told_as_released_to_who_hands_it_on() {
    let site = Site::new();
    let mut store = Counting::new(site.store());
    // Nothing tells this process of what happens to its lock.
    store.watches = Semaphore::new(0);
    let builder = LockManager::builder(Arc::new(store)).timing(long_lock_timing());
    let manager = Arc::new(builder.build().unwrap());
    let mut first = soon("the lock", manager.lock("a")).await.unwrap();
    let mut waiters = tokio::task::JoinSet::new();
    let waits = manager.clone();
    waiters.spawn(async move { soon("the lock", waits.lock("a")).await.unwrap().token() });
    until_all_wait(&manager, 2).await;
    end_by_force(&site, "a").await;
    let elsewhere = site.manager("b");
    let mut theirs = soon("the lock", elsewhere.lock("a")).await.unwrap();
    assert_eq!(
        soon("the release", theirs.release()).await,
        ReleaseOutcome::Released
    );
    let release = soon("the release", first.release()).await;
    assert!(
        matches!(&release, ReleaseOutcome::LostBefore(loss) if loss.token == first.token()),
        "{release:?}"
    );
    let heir = waiters.join_next().await.unwrap().unwrap();
    assert!(heir > theirs.token(), "the waiter has it all the same");
}

/// A real store: of the attempts, some go on to it, and the answer to some of those is lost.
struct Unheard {
    inner: SharedStore,
    /// Attempts that may go on; more wait.
    attempts: Semaphore,
    /// Which of them is not answered.
    unanswered: u32,
    begun: AtomicU32,
}

impl LeaseStore for Unheard {
    pass_on!(traits, renew, release, ask, get, list, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            self.attempts
                .acquire()
                .await
                .expect("it is never closed")
                .forget();
            let number = self.begun.fetch_add(1, Ordering::SeqCst);
            let answer = self.inner.acquire(request).await?;
            if number == self.unanswered {
                return Err(StoreError::unknown(Fault::Unreachable, "the answer was lost"));
            }
            Ok(answer)
        })
    }
    /// Nothing tells this process of what happens to its lock.
    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_lock_that_was_handed_on_and_the_answer_was_lost_is_not_told_as_a_loss() {
    let site = Site::new();
    let store = Arc::new(Unheard {
        inner: site.store(),
        attempts: Semaphore::new(2),
        unanswered: 1,
        begun: AtomicU32::new(0),
    });
    let builder = LockManager::builder(store.clone()).timing(long_lock_timing());
    let manager = Arc::new(builder.build().unwrap());
    let mut first = soon("the lock", manager.lock("a")).await.unwrap();
    let token = first.token();
    let waits = manager.clone();
    let waiter = tokio::spawn(async move { waits.lock("a").await.map(drop) });
    until_all_wait(&manager, 2).await;
    let release = tokio::spawn(async move { first.release().await });
    let is_handed_on = async || site.record("a").await.unwrap().token > token;
    eventually_async(LONG_BEFORE, "it is handed on", is_handed_on).await;
    // As if it had expired, before this process hears from its store again.
    end_by_force(&site, "a").await;
    let elsewhere = site.manager("b");
    let theirs = soon("the lock", elsewhere.lock("a")).await.unwrap();
    store.attempts.add_permits(Semaphore::MAX_PERMITS / 2);
    let released = soon("the release", release).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Unconfirmed(_)), "{released:?}");
    drop(theirs);
    waiter.abort();
}

/// A real store whose first release fails for sure; the next waits until it is let go on.
struct Failing {
    inner: SharedStore,
    releases: AtomicU32,
    again: Semaphore,
}

impl LeaseStore for Failing {
    pass_on!(traits, acquire, renew, ask, get, list, examine, run_beside);

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        Box::pin(async move {
            if self.releases.fetch_add(1, Ordering::SeqCst) == 0 {
                let failure = StoreError::not_applied(Fault::Busy, "not now");
                return requests.iter().map(|_| Err(failure.clone())).collect();
            }
            let permit = self.again.acquire().await;
            permit.expect("it is never closed").forget();
            self.inner.release(requests).await
        })
    }
    /// Nothing tells this process of what happens to its lock.
    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_lock_whose_release_surely_failed_and_that_another_has_is_told_as_a_loss() {
    for is_held in [true, false] {
        let site = Site::new();
        let store = Arc::new(Failing {
            inner: site.store(),
            releases: AtomicU32::new(0),
            again: Semaphore::new(0),
        });
        let builder = LockManager::builder(store.clone()).timing(long_lock_timing());
        let manager = builder.build().unwrap();
        let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
        let elsewhere = site.manager("b");
        let (released, theirs) = tokio::join!(soon("the release", lock.release()), async {
            let has_failed = async || store.releases.load(Ordering::SeqCst) > 1;
            eventually_async(PATIENCE, "a second try", has_failed).await;
            end_by_force(&site, "a").await;
            let mut theirs = soon("the lock", elsewhere.lock("a")).await.unwrap();
            if !is_held {
                soon("the release", theirs.release()).await;
            }
            store.again.add_permits(Semaphore::MAX_PERMITS / 2);
            theirs
        });
        let ReleaseOutcome::LostBefore(loss) = released else {
            panic!("{released:?}")
        };
        let by = is_held.then(|| elsewhere.candidate().clone());
        let token = theirs.token();
        assert_eq!(loss.cause, Cause::Succeeded { token, by });
    }
}

/// A real store whose watches tell a little later, as over a network.
struct Late {
    inner: SharedStore,
}

struct LateWatch(Box<dyn Watch>);

impl LeaseStore for Late {
    pass_on!(
        traits, acquire, renew, release, ask, get, list, examine, run_beside
    );

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            let watch = self.inner.watch(scope, interest).await?;
            Ok(Box::new(LateWatch(watch)) as Box<dyn Watch>)
        })
    }
}

impl Watch for LateWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async move {
            let event = self.0.next().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            event
        })
    }
}

/// A process that asks again and again has the lock in rows: another that asks once has it before long,
/// though each release wakes it later than those who are awake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_wants_the_lock_again_and_again_lets_others_have_it() {
    /// It stands back after the first row, the third, the seventh, and so on: this is the eighth time, and
    /// all before were in vain.
    const RELEASES_MAX: u32 = 128;
    /// Of so many turns three are had in time: each time it stands back for milliseconds, in which a busy
    /// machine may not wake another.
    const TURNS_MAX: usize = 20;
    let site = Site::in_memory();
    let (store, manager) = counted(&site);
    let over = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (manager, over) = (manager.clone(), over.clone());
            tokio::spawn(async move {
                while over.load(Ordering::SeqCst) == 0 {
                    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
                    assert_eq!(lock.release().await, ReleaseOutcome::Released);
                }
            })
        })
        .collect();
    eventually_async(PATIENCE, "they are at it", || async { store.releases() > 2 }).await;
    let other = LockManager::builder(Arc::new(Late { inner: site.store() }))
        .candidate("other")
        .timing(long_lock_timing())
        .build()
        .unwrap();
    let mut rows_first = Vec::new();
    while rows_first.iter().filter(|rows| **rows <= RELEASES_MAX).count() < 3 {
        assert!(rows_first.len() < TURNS_MAX, "{rows_first:?} rows first");
        let before = store.releases();
        let lock = soon("the lock", other.lock("a")).await.unwrap();
        rows_first.push(store.releases() - before);
        let taken = store.acquisitions();
        drop(lock);
        eventually_async(PATIENCE, "they have it again", || async {
            store.acquisitions() > taken + 20
        })
        .await;
    }
    over.store(1, Ordering::SeqCst);
    for task in tasks {
        soon("its end", task).await.unwrap();
    }
}
