//! Names that two applications use by mistake: whoever had it first keeps it, the other is refused.
use crate::harness::counting::Counting;
use crate::harness::{Site, lock_timing, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Occupancy;
use tenure::{LockError, LockManager, LockRelease};

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

/// To refuse it only after it was taken would make the intruder the one who held it last, and its next try would be let in.
#[tokio::test]
async fn an_intruder_is_refused_every_time_and_the_owner_keeps_its_name() {
    let site = Site::new();
    let billing = site.manager_builder("x").owner_tag("billing").build().unwrap();
    let store = Arc::new(Counting::new(site.store()));
    let stock = LockManager::builder(store.clone()).owner_tag("stock");
    let stock = stock.timing(lock_timing()).build().unwrap();
    let mut lock = soon("the owner", billing.lock("a")).await.unwrap();
    assert_eq!(soon("the release", lock.release()).await, LockRelease::Released);
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
    soon("its own", stock.lock("b")).await.unwrap();
    assert!(again.token() > lock.token());
}
