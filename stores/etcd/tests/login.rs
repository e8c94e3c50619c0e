//! Connecting takes longer than callers have: it goes on without them, and one dial serves all.
use crate::common::{Scratch, granted, request, seconds, shared, take};
use crate::connect::with_users;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::{Certainty, Fault as StoreFault, LeaseStore};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Fault, FaultProxy, RequestFault, VanishedHost, eventually_async};

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the machine may stall for as long as a login takes.
const ROUNDS_MAX: u32 = 5;

/// Less than the server's hash takes on any machine, and enough to ask on a connection that is there.
const CALLER_TIME_MAX: Duration = Duration::from_millis(60);

/// As an engine's requests, which have a tenth of the ttl. The server's hash takes several times as long, and
/// far less than a login may.
#[tokio::test]
async fn login_that_takes_longer_than_any_caller_waits_is_made_once_for_all() {
    let etcd = with_users("--bcrypt-cost 12").await;
    let proxy = FaultProxy::http2(etcd.address(0)).unwrap();
    let url = format!("etcd://service:hunter2%40@{}", proxy.address());
    let store = eventually_async(PATIENCE, "a store", || EtcdStore::connect(&url)).await;
    let asked = request("job", "holder", seconds(60));
    take(&store, &asked).await;
    for _round in 0..ROUNDS_MAX {
        // A connection that breaks under a request is given up, and its token with it.
        proxy.next_requests(1, RequestFault::CutAfter);
        store.get(&asked.name).await.unwrap_err();
        let (began, mut given_up) = (Instant::now(), 0);
        let lease = loop {
            let looking = tokio::time::timeout(CALLER_TIME_MAX, store.get(&asked.name)).await;
            match looking {
                Ok(Ok(lease)) => break lease,
                // The machine stalled for longer than a login may take.
                Ok(Err(error)) if error.fault == StoreFault::Unreachable => {}
                Ok(Err(error)) => panic!("{error}"),
                Err(_late) => given_up += 1,
            }
            assert!(began.elapsed() < PATIENCE, "every caller begins anew");
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        assert!(lease.is_some_and(|lease| lease.holder == asked.candidate));
        if given_up > 0 {
            return;
        }
    }
    panic!("the login took no longer than a caller waits, in each of {ROUNDS_MAX} rounds");
}

/// Each of them would have to wait for the dials of all who stand before it.
#[tokio::test]
async fn many_callers_wait_no_longer_for_members_that_are_gone_than_one_does() {
    const CALLERS: u32 = 40;
    let proxy = FaultProxy::http2(shared().await.address(0)).unwrap();
    let vanished = VanishedHost::new().await.unwrap();
    let url = format!("etcd://{},{}", proxy.address(), vanished.address());
    let store = Arc::new(Scratch::on(&url).store().await);
    let asked = request("job", "holder", seconds(60));
    take(&*store, &asked).await;
    // It keeps its port, which another test's proxy would get.
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    // The first learns that its connection is gone, which the proxy may end a moment later.
    let began = Instant::now();
    while store.get(&asked.name).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "the connection is there");
    }
    let began = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _caller in 0..CALLERS {
        let (store, name) = (Arc::clone(&store), asked.name.clone());
        callers.spawn(async move { store.get(&name).await });
    }
    for answer in callers.join_all().await {
        assert!(answer.is_err(), "{answer:?}");
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1) * CALLERS / 2, "{took:?}");
}

/// There is none of that ttl yet, so that all of them need it: each would ask anew when the one before has
/// given up.
#[tokio::test]
async fn many_callers_wait_no_longer_for_a_session_of_a_silent_member_than_one_does() {
    const CALLERS: u32 = 20;
    let proxy = FaultProxy::http2(shared().await.address(0)).unwrap();
    let url = format!("etcd://{}", proxy.address());
    let store = Arc::new(Scratch::on(&url).store().await);
    proxy.set(Fault::BlackHole);
    let began = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let store = Arc::clone(&store);
        let asked = request(&format!("job-{caller}"), "holder", seconds(60));
        callers.spawn(async move { store.acquire(&asked).await });
    }
    for answer in callers.join_all().await {
        let error = answer.unwrap_err();
        assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1) * CALLERS / 2, "{took:?}");
    // Who comes later asks anew.
    proxy.heal();
    let asked = request("job", "holder", seconds(60));
    let late = || store.acquire(&asked);
    let _grant = granted(eventually_async(PATIENCE, "a session", late).await);
}
