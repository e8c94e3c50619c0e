//! Requests that arrive late, or twice.
use crate::common::{Scratch, giving_back, granted, name, range, renewal, request, seconds, shared, take};
use crate::faults::{BOUND, bounded, proxied, read_again};
use std::time::Duration;
use tenure_core::{
    Ask, Asked, Certainty, Claimed, Fence, FenceError, FencingToken, LeaseStore, Leases, Released, Renew,
    Renewed, ResourceName, Term,
};
use tenure_etcd::{EtcdFence, EtcdStore};
use tenure_testkit::{Fault, FaultProxy, RequestFault, eventually_async};

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
    // The first is taken by another afterwards, and the second by nobody.
    let both = ["job", "left"].map(|name| request(name, "holder", seconds(60)));
    let before = proxy.counts().requests;
    proxy.set(Fault::EveryRequest(RequestFault::DuplicateLater(
        Duration::from_millis(1_500),
    )));
    let mut tokens = Vec::new();
    for asked in &both {
        let token = take(&store, asked).await.token;
        // The second of them moves it to another session.
        for ttl in [asked.ttl, seconds(90)] {
            let beat = Renew {
                ttl,
                ..renewal(asked, token)
            };
            let renewed = store.renew(&[beat]).await.remove(0);
            assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        }
        let name = asked.name.clone();
        assert_eq!(store.ask(&Ask { name, token }).await, Ok(Asked::Noted));
        // A duplicate of its release would free again what a duplicate of another request holds.
        let releasing = if asked.name.as_str() == "left" {
            &direct
        } else {
            &store
        };
        let released = releasing.release(&[giving_back(asked, token)]).await.remove(0);
        assert_eq!(released, Ok(Released::Vacated));
        tokens.push(token);
    }
    proxy.heal();
    // The next term is there before the duplicates are.
    let next = take(&direct, &request("job", "next", seconds(60))).await;
    let keys = || async {
        let etcd = shared().await;
        range(etcd, 0, &format!("{prefix}/"), &format!("{prefix}0"))
    };
    let (written, sent) = (keys().await, proxy.counts().requests - before);
    assert!(sent >= 15, "{sent} requests");
    eventually_async(BOUND, "the duplicates", || async {
        proxy.counts().duplicated == sent
    })
    .await;
    assert_eq!(keys().await, written, "a duplicate was written");
    let lease = read_again(&store, "job").await.expect("the record");
    assert_eq!((lease.token, lease.released), (next.token, false), "{lease:?}");
    let lease = read_again(&store, "left").await.expect("the record");
    assert_eq!((lease.token, lease.released), (tokens[1], true), "{lease:?}");
}

/// A claim looks and then raises what it has found, and a note adds to what it has read: that may be over by
/// then.
#[tokio::test]
async fn late_duplicates_of_a_fence_lower_neither_mark_nor_count_in_etcd() {
    let (ledger, lease) = (ResourceName::new("ledger").unwrap(), name("nightly"));
    let term = |number| Term::new(lease.clone(), FencingToken::new(number).unwrap());
    let proxy = FaultProxy::http2(shared().await.address(0)).unwrap();
    let scratch = Scratch::new().await;
    let through = Scratch {
        url: format!("etcd://{}", proxy.address()),
        ..scratch.clone()
    };
    let late = EtcdFence::connect(&through.store_url(), Leases::Here)
        .await
        .unwrap();
    let direct = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .unwrap();
    late.mark(&ledger).await.unwrap();
    let before = proxy.counts().requests;
    proxy.set(Fault::EveryRequest(RequestFault::DuplicateLater(
        Duration::from_millis(1_500),
    )));
    let claimed = late.claim(&ledger, &term(5)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: None }));
    late.check(&ledger, &term(4)).await.expect_err("stale");
    late.note_refusals().await;
    proxy.heal();
    let from = Some(term(5).token);
    let claimed = direct.claim(&ledger, &term(9)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from }));
    for _ in 0..2 {
        direct.check(&ledger, &term(5)).await.expect_err("stale");
    }
    direct.note_refusals().await;
    let sent = proxy.counts().requests - before;
    assert!(sent >= 5, "{sent} requests");
    eventually_async(BOUND, "the duplicates", || async {
        proxy.counts().duplicated == sent
    })
    .await;
    let mark = direct.mark(&ledger).await.unwrap().expect("a mark");
    assert_eq!((mark.token, mark.refused), (term(9).token, 3), "{mark:?}");
    let stale = late.check(&ledger, &term(5)).await;
    assert!(matches!(stale, Err(FenceError::Stale { .. })), "{stale:?}");
}

#[tokio::test]
async fn delayed_answers_of_etcd_count_for_what_they_are() {
    let (proxy, store) = proxied().await;
    // Each connection is made before it is slow.
    let warm = request("warm", "holder", seconds(60));
    let warm = [renewal(&warm, take(&store, &warm).await.token)];
    let renewed = store.renew(&warm).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
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
