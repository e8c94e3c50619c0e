//! Names that two applications use by mistake: whoever had it first keeps it, the other is refused.
use crate::harness::counting::Counting;
use crate::harness::{Site, long_lock_timing, pass_on, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::{Answer, Fault, Lease, Occupancy};
use tenure::{LeaseName, LeaseStore, LockError, LockManager, ReleaseOutcome, SharedStore, StoreError};
use tenure_testkit::eventually_async;
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_name_that_two_applications_share_is_refused_by_their_tags() {
    let site = Site::new();
    let billing = site.manager_builder("x").owner_tag("billing").build().unwrap();
    let twin = site.manager_builder("y").owner_tag("billing").build().unwrap();
    let stock = site.manager_builder("z").owner_tag("stock").build().unwrap();
    let mut lock = soon("theirs", billing.lock("a")).await.unwrap();
    for _ in 0..2 {
        let refusal = soon("the refusal", stock.lock("a")).await.unwrap_err();
        assert!(refusal.to_string().contains("billing/x"), "{refusal}");
    }
    soon("the release", lock.release()).await;
    // Those of one application hand it over among themselves.
    let mut lock = soon("the twin", twin.lock("a")).await.unwrap();
    soon("the release", lock.release()).await;
    let refusal = soon("after a release", stock.lock("a")).await.unwrap_err();
    assert!(matches!(refusal, LockError::OtherApplication { .. }), "{refusal}");
}

/// To refuse it only after it was taken would make the intruder the one who held it last, and its next try
/// would be let in.
#[tokio::test]
async fn an_intruder_is_refused_every_time_and_the_owner_keeps_its_name() {
    let site = Site::new();
    let billing = site.manager_builder("x").owner_tag("billing").build().unwrap();
    let store = Arc::new(Counting::new(site.store()));
    let stock = LockManager::builder(store.clone()).owner_tag("stock");
    let stock = stock.timing(long_lock_timing()).build().unwrap();
    let mut lock = soon("the owner", billing.lock("a")).await.unwrap();
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
    let owner = stock.owner();
    let patience = Duration::from_secs(9);
    for round in 0..8 {
        let outcome = match round % 4 {
            0 => soon("a wait", stock.lock("a")).await,
            1 => soon("a look", stock.try_lock("a")).await,
            2 => soon("a bounded wait", stock.try_lock_for("a", patience)).await,
            _ => soon("an owner", owner.lock("a")).await,
        };
        let refusal = outcome.unwrap_err();
        assert!(matches!(refusal, LockError::OtherApplication { .. }), "{refusal}");
        assert!(refusal.to_string().contains("billing/x"), "{refusal}");
    }
    assert_eq!((store.acquisitions(), stock.locks()), (0, 0));
    let record = site.record("a").await.unwrap();
    assert_eq!((record.terms, record.occupancy()), (1, Occupancy::Vacant));
    let again = soon("the owner again", billing.lock("a")).await.unwrap();
    // A name of its own is taken at the cost of one look.
    drop(soon("its own", stock.lock("b")).await.unwrap());
    assert!(again.token() > lock.token());
}

/// Nobody had it at the look, and at the attempt another application has it, or had it and has left it again.
#[tokio::test]
async fn what_another_application_took_between_the_look_and_the_attempt_is_its_own() {
    for is_left in [true, false] {
        let site = Site::new();
        let theirs = site.manager_builder("x").owner_tag("billing");
        let theirs = theirs.timing(long_lock_timing()).build().unwrap();
        let mut store = Counting::new(site.store());
        store.acquires = Semaphore::new(0);
        let store = Arc::new(store);
        let ours = LockManager::builder(store.clone()).owner_tag("stock");
        let ours = ours.timing(long_lock_timing()).build().unwrap();
        let (refused, mut lock) = tokio::join!(soon("the refusal", ours.lock("a")), async {
            let is_tried = async || store.acquisitions() > 0;
            eventually_async(Duration::from_secs(20), "the attempt", is_tried).await;
            let mut lock = soon("theirs", theirs.lock("a")).await.unwrap();
            if is_left {
                assert_eq!(
                    soon("the release", lock.release()).await,
                    ReleaseOutcome::Released
                );
            }
            store.acquires.add_permits(1);
            lock
        });
        let refusal = refused.unwrap_err();
        assert!(matches!(refusal, LockError::OtherApplication { .. }), "{refusal}");
        soon("the release", lock.release()).await;
        let is_given_back = async || site.record("a").await.unwrap().occupancy() == Occupancy::Vacant;
        eventually_async(Duration::from_secs(20), "it is given back", is_given_back).await;
    }
}

#[tokio::test]
async fn one_who_leaves_while_the_owner_is_looked_for_takes_nothing() {
    let site = Site::new();
    let mut store = Counting::new(site.store());
    store.delay = Duration::from_millis(300);
    let store = Arc::new(store);
    let manager = LockManager::builder(store.clone()).owner_tag("billing");
    let manager = manager.timing(long_lock_timing()).build().unwrap();
    let left = tokio::time::timeout(store.delay / 3, manager.lock("a")).await;
    assert!(left.is_err(), "{left:?}");
    tokio::time::sleep(store.delay * 2).await;
    assert_eq!(store.acquisitions(), 0);
}

/// A real store that lets nobody look.
struct Forbidding {
    inner: SharedStore,
}

impl LeaseStore for Forbidding {
    pass_on!(
        traits, acquire, renew, release, ask, list, watch, examine, run_beside
    );

    fn get<'a>(&'a self, _name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let refusal = StoreError::not_applied(Fault::Forbidden, "no right to look");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

#[tokio::test]
async fn a_store_in_which_nobody_may_look_is_not_asked_for_ever() {
    let site = Site::new();
    let store = Arc::new(Forbidding { inner: site.store() });
    let manager = LockManager::builder(store).owner_tag("billing");
    let manager = manager.timing(long_lock_timing()).build().unwrap();
    match soon("the refusal", manager.lock("a")).await {
        Err(LockError::Store(error)) => assert_eq!(error.fault, Fault::Forbidden, "{error}"),
        other => panic!("{other:?}"),
    }
}
