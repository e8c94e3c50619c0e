//! Requests that arrive late, or twice.
use crate::common::{Scratch, giving_back, granted, range, renewal, request, seconds, shared, take};
use crate::faults::{BOUND, bounded, proxied, read_again};
use std::time::Duration;
use tenure_core::{Certainty, LeaseStore, Released, Renewed};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Fault, RequestFault, eventually_async};

/// The place of a store, without the proxy before it.
async fn beside(store: &EtcdStore) -> Scratch {
    Scratch {
        url: shared().await.url(),
        prefix: store.traits().location.split_once('/').unwrap().1.to_owned(),
    }
}

/// Each is applied as often as it arrives: conditions alone make it one.
#[tokio::test]
async fn requests_that_arrive_twice_have_one_term_in_etcd() {
    let (proxy, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.set(Fault::EveryRequest(RequestFault::Duplicate));
    let grant = bounded("a doubled acquisition", store.acquire(&asked)).await;
    let grant = granted(grant.unwrap());
    assert_eq!((grant.terms, grant.again), (1, false));
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    proxy.heal();
    assert!(proxy.counts().duplicated >= 4, "{:?}", proxy.counts());
    let lease = read_again(&store, "job").await.expect("its record");
    assert_eq!((lease.token, lease.terms, lease.released), (grant.token, 1, true));
}

#[tokio::test]
async fn late_duplicate_of_any_request_changes_nothing_in_etcd() {
    let (proxy, store) = proxied().await;
    let beside = beside(&store).await;
    let (direct, prefix) = (beside.store().await, beside.prefix);
    let asked = request("job", "holder", seconds(60));
    let before = proxy.counts().requests;
    proxy.set(Fault::EveryRequest(RequestFault::DuplicateLater(
        Duration::from_millis(1_500),
    )));
    let grant = take(&store, &asked).await;
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    let released = store.release(&[giving_back(&asked, grant.token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    proxy.heal();
    // The next term is there before the duplicates are.
    let next = take(&direct, &request("job", "next", seconds(60))).await;
    let keys = || async {
        let etcd = shared().await;
        range(etcd, 0, &format!("{prefix}/"), &format!("{prefix}0"))
    };
    let (written, sent) = (keys().await, proxy.counts().requests - before);
    assert!(sent >= 4, "{sent} requests");
    eventually_async(BOUND, "the duplicates", || async {
        proxy.counts().duplicated == sent
    })
    .await;
    assert_eq!(keys().await, written, "a duplicate was written");
    let lease = read_again(&store, "job").await.expect("the record");
    assert_eq!((lease.token, lease.released), (next.token, false), "{lease:?}");
}

#[tokio::test]
async fn delayed_answers_of_etcd_count_for_what_they_are() {
    let (proxy, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    // Each frame waits, and a request is some of them.
    let delayed = |pause| Fault::Delay {
        to_server: pause,
        to_client: pause,
    };
    proxy.set(delayed(Duration::from_millis(100)));
    let grant = granted(
        bounded("a slow acquisition", store.acquire(&asked))
            .await
            .unwrap(),
    );
    let renewals = [renewal(&asked, grant.token)];
    let renewed = bounded("a slow renewal", store.renew(&renewals)).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
    // One that comes after it was given up is applied all the same, and told as unknown.
    let late = request("late", "holder", seconds(60));
    proxy.set(delayed(Duration::from_millis(1_100)));
    let lost = bounded("an acquisition that is too slow", store.acquire(&late)).await;
    assert_eq!(lost.unwrap_err().certainty, Certainty::Unknown);
    let direct = beside(&store).await.store().await;
    let written = eventually_async(BOUND, "the late request", || async {
        direct.get(&late.name).await.unwrap()
    })
    .await;
    proxy.heal();
    let again = take(&store, &late).await;
    assert_eq!((again.token, again.again, again.terms), (written.token, true, 1));
    assert!(proxy.counts().delayed >= 8, "{:?}", proxy.counts());
}
