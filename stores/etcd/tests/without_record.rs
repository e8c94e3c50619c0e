//! A lease that is held, and whose record an operator has removed, or whose holder's key was copied without
//! its session.
use crate::common::{Scratch, put, remove, renewal, request, seconds, shared, take, value};
use std::time::Duration;
use tenure_core::{Acquired, End, Fault, LeaseStore, Listed, Page, Renewed, StoreError};
use tenure_testkit::eventually_async;

fn assert_is_held_without_a_record(error: &StoreError) {
    assert_eq!(error.fault, Fault::Unreadable, "{error}");
    for part in ["\"job\"", "held", "stop its holder"] {
        assert!(error.message.contains(part), "{error}");
    }
}

/// Its holder believes in it, and nothing tells it otherwise at once.
#[tokio::test]
async fn lease_whose_record_was_removed_is_nobody_elses_before_its_holder_has_stopped() {
    let scratch = Scratch::new().await;
    let (holder, other) = (scratch.store().await, scratch.store().await);
    // Longer than it takes a loaded machine to look at it from all sides.
    let asked = request("job", "holder", seconds(15));
    let token = take(&holder, &asked).await.token;
    let record = scratch.key("job", "");
    assert_eq!(remove(shared().await, 0, &record, &format!("{record}\0")), 1);

    let next = request("job", "next", seconds(60));
    assert_is_held_without_a_record(&other.acquire(&next).await.unwrap_err());
    assert_is_held_without_a_record(&other.get(&asked.name).await.unwrap_err());
    assert_is_held_without_a_record(
        &holder
            .renew(&[renewal(&asked, token)])
            .await
            .remove(0)
            .unwrap_err(),
    );
    let page = Page::first("", 10);
    let listed = other.list(&page).await.unwrap().leases.remove(0);
    let Listed::Unreadable { error, .. } = listed else {
        panic!("{listed:?}")
    };
    assert_is_held_without_a_record(&error);

    drop(holder);
    let free = async || match other.acquire(&next).await {
        Ok(Acquired::Granted(grant)) => Some(grant),
        Ok(answer) => panic!("{answer:?}"),
        Err(error) => {
            assert_is_held_without_a_record(&error);
            None
        }
    };
    let grant = eventually_async(Duration::from_secs(60), "it is free", free).await;
    assert!(grant.token > token && grant.predecessor.is_none(), "{grant:?}");
}

/// As `etcdctl make-mirror` leaves it, which copies no sessions: it would be held for ever, and nobody would
/// say why.
#[tokio::test]
async fn lease_whose_holder_is_on_no_session_is_told_as_such_until_its_holder_renews_it_or_it_is_removed() {
    let (scratch, etcd) = (Scratch::new().await, shared().await);
    let (holder, other) = (scratch.store().await, scratch.store().await);
    let asked = request("job", "holder", seconds(300));
    let token = take(&holder, &asked).await.token;
    let key = scratch.key("job", "\tholder");
    let copy = || put(etcd, 0, &key, &value(etcd, 0, &key).unwrap());
    let told = |error: &StoreError| {
        assert_eq!(error.fault, Fault::Unreadable, "{error}");
        for part in ["\"job\"", "\\tholder", "no session", "remove it"] {
            assert!(error.message.contains(part), "{error}");
        }
    };
    copy();
    let next = request("job", "next", seconds(60));
    told(&other.acquire(&next).await.unwrap_err());
    told(&other.get(&asked.name).await.unwrap_err());
    let page = Page::first("", 10);
    match other.list(&page).await.unwrap().leases.remove(0) {
        Listed::Unreadable { error, .. } => told(&error),
        listed => panic!("{listed:?}"),
    }
    let renewed = holder.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let lease = other.get(&asked.name).await.unwrap().unwrap();
    assert_eq!(lease.token, token);

    copy();
    assert_eq!(remove(etcd, 0, &key, &format!("{key}\0")), 1);
    let grant = take(&other, &next).await;
    let predecessor = grant.predecessor.as_ref().map(|before| before.end);
    assert_eq!(predecessor, Some(End::Expired), "{grant:?}");
}
