//! Who has no time to wait.
use crate::harness::counting::Counting;
use crate::harness::{Site, lock_timing, long_lock_timing, pass_on, soon};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::contract::{Acquire, Acquired, Answer, Fault, LeasePage, Page};
use tenure::{
    Event, Fairness, LeaseStore, LockError, LockManager, LockTimingOptions, ReleaseOutcome, SharedStore,
    StoreError,
};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// How often a machine may stand still where it must not.
const ROUNDS_MAX: u32 = 5;

/// With no time at all there is one look, and a store that needs longer than somebody is patient is no reason
/// to refuse.
#[tokio::test]
async fn a_free_lock_is_had_with_no_patience_and_one_that_is_held_is_not() {
    let site = Site::in_memory();
    let (ours, theirs) = (site.manager("ours"), site.manager("theirs"));
    for patience in [Duration::ZERO, Duration::from_micros(50)] {
        let mut lock = soon("a free one", ours.try_lock_for("a", patience))
            .await
            .unwrap();
        let owner = theirs.owner();
        for (outcome, expected) in [
            (
                soon("elsewhere", theirs.try_lock_for("a", patience)).await,
                Some("ours"),
            ),
            (
                soon("an owner", owner.try_lock_for("a", patience)).await,
                Some("ours"),
            ),
            (soon("here", ours.try_lock_for("a", patience)).await, None),
        ] {
            let Err(LockError::TimedOut { waited, held_by, .. }) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(held_by.as_ref().map(|lease| lease.holder.id.as_str()), expected);
            assert!(waited > patience, "{waited:?}");
        }
        assert_eq!(
            soon("the release", lock.release()).await,
            ReleaseOutcome::Released
        );
    }
}

/// A look in order, or at whose the name is, takes two requests, each of which is answered within its own
/// time.
#[tokio::test]
async fn a_look_of_two_requests_is_made_though_both_take_longer_than_one_may() {
    let timing = LockTimingOptions::new(Duration::from_secs(100)).check().unwrap();
    let slow = |site: &Site| {
        let mut store = Counting::new(site.store());
        store.delay = timing.lease().request_timeout() * 3 / 5;
        LockManager::builder(Arc::new(store)).timing(timing)
    };
    let (one, other) = (Site::in_memory(), Site::in_memory());
    let fair = slow(&one).fairness(Fairness::Fair).build().unwrap();
    let tagged = slow(&other).owner_tag("billing").build().unwrap();
    let (fair, tagged) = tokio::join!(
        soon("in order", fair.try_lock_for("a", Duration::ZERO)),
        soon("of an application", tagged.try_lock_for("a", Duration::ZERO)),
    );
    drop(fair.unwrap());
    drop(tagged.unwrap());
}

#[tokio::test]
async fn a_look_in_order_does_not_wait_for_ever_for_a_store_that_does_not_list() {
    let site = Site::new();
    let mut store = Counting::new(site.store());
    store.delay = Duration::from_secs(3600);
    let builder = LockManager::builder(Arc::new(store)).fairness(Fairness::Fair);
    let manager = builder.timing(lock_timing()).build().unwrap();
    let impatient = soon("no time at all", manager.try_lock_for("a", Duration::ZERO)).await;
    for outcome in [
        impatient,
        soon("the end of the look", manager.try_lock("a")).await,
    ] {
        match outcome {
            Err(LockError::Store(error)) => assert_eq!(error.fault, Fault::TimedOut, "{error}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A real store that lets nobody list.
struct Unlisted {
    inner: SharedStore,
}

impl LeaseStore for Unlisted {
    pass_on!(
        traits, acquire, renew, release, ask, get, watch, examine, run_beside
    );

    fn list<'a>(&'a self, _page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let refusal = StoreError::not_applied(Fault::Forbidden, "no right to list");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

#[tokio::test]
async fn a_wait_in_order_ends_where_nobody_may_list_who_waits() {
    let site = Site::new();
    let store = Arc::new(Unlisted { inner: site.store() });
    let builder = LockManager::builder(store).fairness(Fairness::Fair);
    let manager = builder.timing(long_lock_timing()).build().unwrap();
    match soon("the refusal", manager.lock("a")).await {
        Err(LockError::Store(error)) => assert_eq!(error.fault, Fault::Forbidden, "{error}"),
        other => panic!("{other:?}"),
    }
}

/// Nobody asks for a lock that one of this process has: a store that was asked nothing for so long is not
/// silent.
#[tokio::test]
async fn a_patience_that_ends_while_a_lock_is_handed_on_tells_of_no_outage() {
    let site = Site::in_memory();
    let store = Arc::new(Counting::new(site.store()));
    let timing = LockTimingOptions::new(Duration::from_secs(30)).check().unwrap();
    let manager = LockManager::builder(store.clone()).timing(timing);
    let manager = manager.build().unwrap();
    let attempt_max = timing.lease().request_timeout();
    for _round in 0..ROUNDS_MAX {
        let mut held = soon("the lock", manager.lock("a")).await.unwrap();
        sleep(attempt_max).await;
        let kept = store.acquires.forget_permits(Semaphore::MAX_PERMITS);
        let handing_on = async {
            // The other waits by then, or finds it free a moment later.
            sleep(Duration::from_millis(200)).await;
            let released = Instant::now();
            (released, tokio::spawn(async move { held.release().await }))
        };
        let waiting = manager.try_lock_for("a", Duration::from_millis(400));
        let (waited, (released, releasing)) = tokio::join!(soon("the patience", waiting), handing_on);
        let is_silent = released.elapsed() > attempt_max / 3;
        store.acquires.add_permits(kept);
        soon("the release", releasing).await.unwrap();
        match waited {
            Err(LockError::TimedOut { held_by: None, .. }) => return,
            Err(LockError::Store(_)) if is_silent => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("the machine stood still in each of {ROUNDS_MAX} rounds");
}

/// A real store that refuses the login for the first requests, as one behind which a directory is away.
struct RefusedAtFirst {
    inner: SharedStore,
    refusals_left: AtomicU32,
}

impl RefusedAtFirst {
    fn is_refused(&self) -> Option<StoreError> {
        let less = |left: u32| left.checked_sub(1);
        let counted = self
            .refusals_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        let refusal = || StoreError::not_applied(Fault::Unauthenticated, "the credentials were refused");
        counted.ok().map(|_before| refusal())
    }
}

impl LeaseStore for RefusedAtFirst {
    pass_on!(traits, renew, release, ask, get, watch, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        match self.is_refused() {
            Some(refusal) => Box::pin(std::future::ready(Err(refusal))),
            None => self.inner.acquire(request),
        }
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        match self.is_refused() {
            Some(refusal) => Box::pin(std::future::ready(Err(refusal))),
            None => self.inner.list(page),
        }
    }
}

#[tokio::test]
async fn a_login_that_is_refused_for_a_while_ends_no_wait_for_a_lock() {
    for fairness in [Fairness::Barging, Fairness::Fair] {
        let site = Site::new();
        let store = Arc::new(RefusedAtFirst {
            inner: site.store(),
            refusals_left: AtomicU32::new(2),
        });
        let builder = LockManager::builder(store.clone()).fairness(fairness);
        let manager = builder.timing(long_lock_timing()).build().unwrap();
        match soon("one look", manager.try_lock("a")).await {
            Err(LockError::Store(error)) => assert_eq!(error.fault, Fault::Unauthenticated, "{error}"),
            other => panic!("{other:?}"),
        }
        let lock = soon("the lock", manager.lock("a")).await.unwrap();
        assert_eq!(store.refusals_left.load(Ordering::SeqCst), 0);
        drop(lock);
        // In a queue whose order cannot be read.
        store.refusals_left.store(3, Ordering::SeqCst);
        drop(soon("the lock", manager.lock("a")).await.unwrap());
    }
}

/// A real store whose lists fail, one after another, as they are told.
struct ListsFail {
    inner: SharedStore,
    faults: Mutex<Vec<Option<Fault>>>,
}

impl LeaseStore for ListsFail {
    pass_on!(
        traits, acquire, renew, release, ask, get, watch, examine, run_beside
    );

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        match self.faults.lock().unwrap().pop().flatten() {
            Some(fault) => {
                let failure = StoreError::not_applied(fault, "no list");
                Box::pin(std::future::ready(Err(failure)))
            }
            None => self.inner.list(page),
        }
    }
}

/// The lock may be free all the time: nobody else tells why it is waited for.
#[tokio::test]
async fn a_queue_that_cannot_be_read_is_told_once_for_each_kind_of_fault() {
    let site = Site::new();
    let (late, away) = (Fault::TimedOut, Fault::Unreachable);
    let store = Arc::new(ListsFail {
        inner: site.store(),
        // The last comes first.
        faults: Mutex::new([late, late, away, away, late].map(Some).to_vec()),
    });
    let builder = LockManager::builder(store)
        .candidate("ours")
        .fairness(Fairness::Fair);
    let manager = builder.timing(lock_timing()).build().unwrap();
    let mut events = manager.events();
    drop(soon("the lock", manager.lock("a")).await.unwrap());
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::AttemptFailed { name, error, .. } = event {
            told.push((name.to_string(), error.fault));
        }
    }
    let place = || "a/candidates/1/ours".to_owned();
    assert_eq!(told, [(place(), late), (place(), away), (place(), late)]);
}
