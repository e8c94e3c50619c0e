//! How many locks a manager takes at once, and what keeps it from taking more.
use crate::harness::counting::Counting;
use crate::harness::{Site, enduring_lock_timing, long_lock_timing, pass_on, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{Acquire, Acquired, Answer, Fault, Lease, Occupancy};
use tenure::{
    LeaseName, LeaseStore, Lock, LockError, LockManager, LockTimingOptions, SharedStore, StoreError,
};
use tenure_testkit::eventually_async;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

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
    drop(soon("another name", manager.lock("another")).await.unwrap());
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
        drop(soon("who waited", lock).await.unwrap().unwrap());
    }
}

/// The last would come to its one look after as many time-outs as there are slices of those that are begun at
/// once.
#[tokio::test]
async fn looks_at_a_store_that_answers_no_attempt_end_without_each_being_begun() {
    for tag in [None, Some("billing")] {
        looks_at_a_silent_store_end(tag).await;
    }
}

/// With a tag each of them begins with a look at whose the lock is, which is answered.
async fn looks_at_a_silent_store_end(tag: Option<&str>) {
    const NAMES: u32 = 300;
    let site = Site::new();
    let (store, manager) = silent(&site, tag);
    for look in looks_at_once(&manager, NAMES) {
        match soon("a look", look).await.unwrap() {
            Err(LockError::Store(error)) => assert_eq!(error.fault, Fault::TimedOut, "{error}"),
            other => panic!("{other:?}"),
        }
    }
    let begun = store.acquisitions();
    assert!(begun < NAMES / 2, "{begun} were begun, one slice after another");
    assert_eq!(manager.locks(), 0);
    store.acquires.add_permits(Semaphore::MAX_PERMITS / 2);
    drop(
        soon("a lock of a store that answers", manager.lock("0"))
            .await
            .unwrap(),
    );
}

/// Each of them waits longer than a time-out, and none of them in vain.
#[tokio::test]
async fn looks_at_a_slow_store_are_all_made() {
    const NAMES: u32 = 200;
    let site = Site::in_memory();
    let mut store = Counting::new(site.store());
    let timing = long_lock_timing();
    store.delay = timing.lease().request_timeout() / 4;
    let manager = LockManager::builder(Arc::new(store)).timing(timing);
    let manager = Arc::new(manager.build().unwrap());
    for look in looks_at_once(&manager, NAMES) {
        drop(soon("a look", look).await.unwrap().unwrap());
    }
}

/// An attempt is two requests, and the first of all is answered only after more than one time-out.
#[tokio::test]
async fn looks_of_two_requests_each_at_a_slow_store_are_all_made() {
    /// More than are made at once.
    const NAMES: u32 = 40;
    let site = Site::in_memory();
    let mut store = Counting::new(site.store());
    let timing = long_lock_timing();
    store.delay = timing.lease().request_timeout() * 3 / 5;
    let manager = LockManager::builder(Arc::new(store)).owner_tag("billing");
    let manager = Arc::new(manager.timing(timing).build().unwrap());
    for look in looks_at_once(&manager, NAMES) {
        drop(soon("a look", look).await.unwrap().unwrap());
    }
}

/// What a slow store says of each lock, instead of granting it.
#[derive(Clone, Copy, Debug)]
enum Says {
    /// It is another application's: at the look, so that there is no attempt.
    Foreign,
    /// At the attempt: it is locked by another writer, as a store that is a file.
    Busy,
    /// Nothing: at the attempt, its driver gives up to reach it.
    Nothing,
}

/// A real store that has no lock to give, and says so after a while.
struct SlowToRefuse {
    inner: SharedStore,
    says: Says,
    delay: Duration,
}

impl LeaseStore for SlowToRefuse {
    pass_on!(traits, renew, release, ask, list, watch, examine, run_beside);

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async move {
            tokio::time::sleep(self.delay).await;
            self.inner.get(name).await
        })
    }
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            let (fault, why) = match self.says {
                Says::Foreign => return self.inner.acquire(request).await,
                Says::Busy => (Fault::Busy, "another writer has it"),
                Says::Nothing => (Fault::Unreachable, "no connection"),
            };
            tokio::time::sleep(self.delay).await;
            Err(StoreError::not_applied(fault, why))
        })
    }
}

/// What so many looks at such a store hear, each of which waits longer than a time-out for its turn.
async fn looks_at_a_slow_store_that(says: Says) -> Vec<LockError> {
    const NAMES: u32 = 200;
    let site = Site::in_memory();
    let timing = long_lock_timing();
    let theirs = site.manager_builder("x").timing(timing).owner_tag("billing");
    let theirs = Arc::new(theirs.build().unwrap());
    for look in looks_at_once(&theirs, NAMES) {
        drop(soon("a lock of theirs", look).await.unwrap().unwrap());
    }
    let store = SlowToRefuse {
        inner: site.store(),
        says,
        delay: timing.lease().request_timeout() / 4,
    };
    let builder = LockManager::builder(Arc::new(store)).timing(timing);
    let builder = match says {
        Says::Foreign => builder.owner_tag("stock"),
        Says::Busy | Says::Nothing => builder,
    };
    let manager = Arc::new(builder.build().unwrap());
    let mut refusals = Vec::new();
    for look in looks_at_once(&manager, NAMES) {
        refusals.push(soon("a look", look).await.unwrap().unwrap_err());
    }
    refusals
}

#[tokio::test]
async fn looks_at_a_slow_store_full_of_other_applications_names_are_all_made() {
    for refusal in looks_at_a_slow_store_that(Says::Foreign).await {
        assert!(matches!(refusal, LockError::OtherApplication { .. }), "{refusal}");
    }
}

#[tokio::test]
async fn looks_at_a_slow_store_that_fails_each_attempt_are_all_made() {
    for refusal in looks_at_a_slow_store_that(Says::Busy).await {
        assert!(
            matches!(&refusal, LockError::Store(error) if error.fault == Fault::Busy),
            "{refusal}"
        );
    }
}

/// That it could not be reached is not its answer, though it comes in time.
#[tokio::test]
async fn looks_at_a_store_that_is_slowly_found_unreachable_end_without_each_being_begun() {
    let refusals = looks_at_a_slow_store_that(Says::Nothing).await;
    let is_not_begun =
        |refusal: &&LockError| matches!(refusal, LockError::Store(error) if error.fault == Fault::TimedOut);
    let not_begun = refusals.iter().filter(is_not_begun).count();
    assert!(not_begun > 0, "each was begun, one slice after another");
}

/// The earlier one had waited for a release, which was answered in time.
#[tokio::test]
async fn a_look_is_not_given_up_when_an_earlier_one_would_have_been() {
    let site = Site::in_memory();
    let store = Arc::new(Counting::new(site.store()));
    let timing = LockTimingOptions::new(Duration::from_secs(120)).check().unwrap();
    let manager = LockManager::builder(store.clone()).timing(timing);
    let manager = Arc::new(manager.build().unwrap());
    let look = || {
        let manager = manager.clone();
        tokio::spawn(async move { manager.try_lock("a").await })
    };
    let quarter = timing.lease().request_timeout() / 4;
    let lock = soon("the lock", manager.lock("a")).await.unwrap();
    store.releasing.forget_permits(Semaphore::MAX_PERMITS);
    drop(lock);
    let early = look();
    tokio::time::sleep(quarter).await;
    store.releasing.add_permits(Semaphore::MAX_PERMITS / 2);
    drop(soon("the early look", early).await.unwrap().unwrap());
    tokio::time::sleep(quarter).await;
    store.acquires.forget_permits(Semaphore::MAX_PERMITS);
    let late = look();
    tokio::time::sleep(quarter * 5 / 2).await;
    store.acquires.add_permits(1);
    drop(soon("the late look", late).await.unwrap().unwrap());
}

type Wanted = JoinHandle<Result<Lock, LockError>>;

/// A store that answers no attempt yet.
fn silent(site: &Site, tag: Option<&str>) -> (Arc<Counting>, Arc<LockManager>) {
    let mut store = Counting::new(site.store());
    store.acquires = Semaphore::new(0);
    let store = Arc::new(store);
    let mut manager = LockManager::builder(store.clone()).timing(long_lock_timing());
    if let Some(tag) = tag {
        manager = manager.owner_tag(tag);
    }
    (store, Arc::new(manager.build().unwrap()))
}

/// One look at each of so many locks.
fn looks_at_once(manager: &Arc<LockManager>, names: u32) -> Vec<Wanted> {
    let look = |number: u32| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.try_lock(format!("{number}")).await })
    };
    (0..names).map(look).collect()
}

/// So many locks that somebody waits for each, of a store that answers no attempt yet.
fn wanted_at_once(site: &Site, names: u32) -> (Arc<Counting>, Arc<LockManager>, Vec<Wanted>) {
    let (store, manager) = silent(site, None);
    let wants = |number: u32| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.lock(format!("{number}")).await })
    };
    let waiting = (0..names).map(wants).collect();
    (store, manager, waiting)
}

/// Sent all at once, the last requests would be given up before the store comes to them, and be sent again,
/// for ever.
#[tokio::test]
async fn whoever_wants_many_locks_at_once_sends_the_store_a_few_requests_at_a_time() {
    const NAMES: u32 = 200;
    let site = Site::new();
    let (store, manager, waiting) = wanted_at_once(&site, NAMES);
    let all_wait = async || manager.locks() == u64::from(NAMES) && store.acquisitions() > 0;
    eventually_async(Duration::from_secs(20), "all wait", all_wait).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(store.acquisitions() <= 32, "{} at once", store.acquisitions());
    store.acquires.add_permits(Semaphore::MAX_PERMITS / 2);
    for lock in waiting {
        drop(soon("its turn", lock).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn guards_that_are_bound_all_the_time_put_off_no_release_of_a_leaked_one() {
    let site = Site::new();
    let builder = site.manager_builder("a").timing(enduring_lock_timing());
    let manager = builder.build().unwrap();
    let ended = tokio::spawn(async {});
    let leaked = soon("leaked", manager.lock("leaked")).await.unwrap();
    std::mem::forget(leaked.bound_to(&ended));
    let is_released = async || {
        // Much oftener than what is bound is looked at.
        drop(manager.lock("other").await.unwrap().bound_to(&ended));
        let record = site.record("leaked").await.unwrap();
        record.occupancy() == Occupancy::Vacant
    };
    eventually_async(Duration::from_secs(20), "it is released", is_released).await;
}

/// What it was bound to has ended only after it was released, and another guard has the lock by then.
#[tokio::test]
async fn a_guard_that_was_bound_and_released_ends_no_later_one() {
    let site = Site::new();
    let timing = enduring_lock_timing();
    let manager = site.manager_builder("a").timing(timing).build().unwrap();
    let ended = tokio::spawn(async {});
    let mut bound = soon("the lock", manager.lock("a"))
        .await
        .unwrap()
        .bound_to(&ended);
    soon("the release", bound.release()).await;
    let later = soon("the lock again", manager.lock("a")).await.unwrap();
    tokio::time::sleep(3 * timing.lease().renew_every()).await;
    assert_eq!(later.check(), Ok(later.token()));
}

/// As many as a manager begins to take at once, and each leaves before its attempt is answered.
#[tokio::test]
async fn attempts_that_are_dropped_before_their_answer_keep_no_other_lock_waiting() {
    const NAMES: u32 = 40;
    let site = Site::new();
    let (store, manager, waiting) = wanted_at_once(&site, NAMES);
    let are_begun = async || store.acquisitions() >= 32;
    eventually_async(Duration::from_secs(20), "as many as at once", are_begun).await;
    for waiting in waiting {
        waiting.abort();
        drop(waiting.await);
    }
    store.acquires.add_permits(Semaphore::MAX_PERMITS / 2);
    drop(soon("another name", manager.lock("another")).await.unwrap());
}
