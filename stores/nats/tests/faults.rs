//! Real faults of one server and of the network before it. Errors come back bounded, tokens rise, connections
//! heal.

use crate::common::{Scratch, giving_back, granted, renewal, request, seconds, shared, take};
use std::time::{Duration, Instant};
use tenure_conformance::asking::warm_up;
use tenure_core::{
    Certainty, Durability, Fault as StoreFault, Interest, LeaseStore, Released, Renewed, Scope,
};
use tenure_nats::NatsStore;
use tenure_testkit::{Fault, FaultProxy, NatsOptions, NatsServer, RequestFault, eventually_async};

/// The store's own bound on a request is 5 s; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(20);

/// A proxy in front of the shared server, and a store behind it that has made its bucket and both
/// connections.
async fn proxied() -> (FaultProxy, Scratch, NatsStore) {
    let server = shared().await;
    let proxy = FaultProxy::nats(server.address()).expect("a proxy");
    let scratch = Scratch::on(&format!("nats://{}", proxy.address()));
    let store = scratch.store().await;
    warm_up(&store).await;
    (proxy, scratch, store)
}

async fn bounded<T>(what: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let answer = work.await;
    assert!(began.elapsed() < BOUND, "{what} took {:?}", began.elapsed());
    answer
}

#[tokio::test]
async fn lost_reply_of_an_acquisition_in_nats_is_resolved_by_its_attempt() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "PUB", RequestFault::CutAfter);
    let lost = bounded("the lost reply", store.acquire(&asked))
        .await
        .expect_err("the reply was lost");
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    assert!(lost.message.contains("job"), "{lost}");
    assert_eq!(proxy.counts().cut_after, 1, "the fault happened");
    let written = store
        .get(&asked.name)
        .await
        .expect("a read")
        .expect("it was applied all the same");
    let grant = take(&store, &asked).await;
    assert_eq!((grant.token, grant.again, grant.terms), (written.token, true, 1));
}

#[tokio::test]
async fn write_that_never_arrived_is_unknown_and_a_read_changes_nothing() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    for (command, certainty) in [
        ("PUB", Certainty::Unknown),
        ("STREAM.MSG.GET", Certainty::NotApplied),
    ] {
        proxy.next_commands(1, command, RequestFault::CutBefore);
        let lost = bounded("the lost request", store.acquire(&asked))
            .await
            .expect_err("the request was lost");
        assert_eq!(lost.certainty, certainty, "{command}: {lost}");
    }
    let grant = take(&store, &asked).await;
    assert_eq!((grant.again, grant.terms), (false, 1));
}

#[tokio::test]
async fn write_that_arrives_twice_has_one_term() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "PUB", RequestFault::Duplicate);
    let first = take(&store, &asked).await;
    assert_eq!(proxy.counts().duplicated, 1, "the fault happened");
    let again = take(&store, &asked).await;
    assert_eq!((again.token, again.terms, again.again), (first.token, 1, true));
}

#[tokio::test]
async fn late_duplicate_of_any_write_changes_nothing() {
    let (proxy, scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let later = RequestFault::DuplicateLater(Duration::from_millis(400));
    proxy.next_commands(2, "PUB", later);
    let grant = take(&store, &asked).await;
    assert_eq!(
        store.release(&[giving_back(&asked, grant.token)]).await[0],
        Ok(Released::Vacated)
    );
    // The next term is there before the duplicates of the grant and of the release are.
    let next = take(&store, &request("job", "next", seconds(60))).await;
    let beneath = scratch.beneath().await;
    let before = beneath.last(&crate::common::key("job")).await;
    eventually_async(Duration::from_secs(30), "the duplicates", || async {
        proxy.counts().duplicated == 2
    })
    .await;
    assert_eq!(
        beneath.last(&crate::common::key("job")).await,
        before,
        "a duplicate was stored"
    );
    let lease = store.get(&asked.name).await.expect("a read").expect("the record");
    assert_eq!((lease.token, lease.released), (next.token, false), "{lease:?}");
}

#[tokio::test]
async fn lost_replies_of_renewal_and_release_in_nats_are_resolved_by_asking_again() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [
        renewal(&asked, grant.token),
        renewal(&request("none", "holder", seconds(60)), grant.token),
    ];
    for fault in [RequestFault::CutBefore, RequestFault::CutAfter] {
        proxy.next_commands(1, "PUB", fault);
        let lost = bounded("the lost reply", store.renew(&renewals)).await;
        assert_eq!(lost.len(), renewals.len());
        let error = lost[0].as_ref().expect_err("the reply was lost");
        assert_eq!(error.certainty, Certainty::Unknown, "{error}");
        let again = store.renew(&renewals).await;
        assert!(matches!(again[0], Ok(Renewed::Extended { .. })), "{again:?}");
        assert_eq!(again[1], Ok(Renewed::Lost(None)));
    }
    proxy.next_commands(1, "PUB", RequestFault::CutAfter);
    let releases = [giving_back(&asked, grant.token)];
    let lost = bounded("the lost reply", store.release(&releases)).await;
    assert_eq!(lost[0].as_ref().expect_err("lost").certainty, Certainty::Unknown);
    assert_eq!(store.release(&releases).await[0], Ok(Released::Vacated));
}

#[tokio::test]
async fn silent_network_before_nats_is_given_up_and_works_again_at_once() {
    for fault in [Fault::BlackHole, Fault::HalfOpen] {
        let (proxy, _scratch, store) = proxied().await;
        let asked = request("job", "holder", seconds(60));
        let grant = take(&store, &asked).await;
        proxy.set(fault);
        let renewals = [renewal(&asked, grant.token)];
        let (silent, read) = bounded("a silent renewal and read", async {
            tokio::join!(store.renew(&renewals), store.get(&asked.name))
        })
        .await;
        let error = silent[0].as_ref().expect_err("nothing answered");
        assert_eq!(error.fault, StoreFault::TimedOut, "{error}");
        assert_eq!(
            read.expect_err("nothing answered").certainty,
            Certainty::NotApplied,
            "a read changes nothing"
        );
        // The old connections stay silent for good: only new ones help.
        proxy.heal();
        let renewed = store.renew(&renewals).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{fault:?}: {renewed:?}"
        );
        assert!(store.get(&asked.name).await.expect("a read").is_some());
    }
}

/// The engine gives up long before the store's own bound. A connection that nobody hears of must be replaced
/// then, too, or the term is lost although the network is well again.
#[tokio::test]
async fn silent_connection_to_nats_is_replaced_although_every_caller_gives_up_first() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    proxy.set(Fault::BlackHole);
    let renewals = [renewal(&asked, grant.token)];
    let impatient = tokio::time::timeout(Duration::from_millis(300), store.renew(&renewals));
    assert!(impatient.await.is_err(), "nothing answers");
    proxy.heal();
    let renewed = store.renew(&renewals).await.remove(0);
    assert!(
        matches!(renewed, Ok(Renewed::Extended { .. })),
        "the old connection was used: {renewed:?}"
    );
}

#[tokio::test]
async fn closed_connection_to_nats_is_replaced_by_the_next_request() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    proxy.cut_connections();
    let renewed = eventually_async(BOUND, "a renewal", || async {
        store.renew(&[renewal(&asked, grant.token)]).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    assert!(store.get(&asked.name).await.is_ok(), "the other connection, too");
}

/// Renewals are not behind other requests: they have a connection of their own.
#[tokio::test]
async fn store_has_two_connections_and_renewals_one_of_them() {
    let mut counted = Vec::new();
    // One that a busy machine was too slow to make is made again, and counted twice.
    for _try in 0..4 {
        let (proxy, _scratch, _store) = proxied().await;
        counted.push(proxy.counts().connections);
        if counted.ends_with(&[2]) {
            return;
        }
    }
    panic!("{counted:?} connections");
}

#[tokio::test]
async fn delayed_answers_of_nats_count_for_what_they_are() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let pause = Duration::from_millis(500);
    proxy.set(Fault::Delay {
        to_server: pause,
        to_client: pause,
    });
    let grant = bounded("a slow acquisition", store.acquire(&asked))
        .await
        .map(granted)
        .expect("it is slow, and no more");
    proxy.heal();
    assert_eq!(take(&store, &asked).await.token, grant.token);
}

#[tokio::test]
async fn refused_connections_to_nats_are_told_as_not_applied() {
    let (proxy, _scratch, store) = proxied().await;
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    let asked = request("job", "holder", seconds(60));
    // A request that goes out before the cut is noticed is lost with its connection, and nobody knows how far
    // it came.
    let refused = eventually_async(BOUND, "a refusal that is sure", || async {
        let error = bounded("a refused request", store.acquire(&asked))
            .await
            .expect_err("refused");
        assert_eq!(error.fault, StoreFault::Unreachable, "{error}");
        (error.certainty == Certainty::NotApplied).then_some(error)
    })
    .await;
    assert!(refused.message.contains("127.0.0.1"), "{refused}");
}

#[tokio::test]
async fn broken_or_silent_watch_of_nats_says_so_and_the_next_one_hears() {
    for silently in [false, true] {
        let (proxy, _scratch, store) = proxied().await;
        let asked = request("job", "holder", seconds(60));
        let mut watch = store
            .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
            .await
            .expect("a watch");
        match silently {
            true => proxy.set(Fault::BlackHole),
            false => proxy.cut_connections(),
        }
        let over = tokio::time::timeout(BOUND, watch.next())
            .await
            .expect("it says so in time");
        assert!(
            over.expect_err("it is over").message.contains("start a new one"),
            "{silently}"
        );
        proxy.heal();
        let mut next = eventually_async(BOUND, "a watch", || async {
            store
                .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
                .await
        })
        .await;
        take(&store, &asked).await;
        let event = tokio::time::timeout(BOUND, next.next()).await.expect("it hears");
        assert!(event.is_ok(), "{event:?}");
    }
}

#[tokio::test]
async fn frozen_nats_is_given_up_and_loses_nothing() {
    let server = NatsServer::start(NatsOptions::durable()).await.expect("a server");
    let store = Scratch::on(&server.url()).store().await;
    let asked = request("job", "holder", seconds(300));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    server.freeze();
    let silent = bounded("a frozen renewal", store.renew(&renewals)).await;
    assert_eq!(
        silent[0].as_ref().expect_err("frozen").fault,
        StoreFault::TimedOut
    );
    server.thaw();
    let renewed = eventually_async(BOUND, "a renewal", || async {
        store.renew(&renewals).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}

#[tokio::test]
async fn durable_nats_that_is_killed_keeps_terms_and_tokens() {
    let mut server = NatsServer::start(NatsOptions::durable()).await.expect("a server");
    let scratch = Scratch::on(&server.url());
    let store = scratch
        .safe_store_with(&format!("?monitor={}", server.monitor_address()))
        .await;
    let (held, back) = (
        request("held", "a", seconds(300)),
        request("back", "b", seconds(300)),
    );
    let (term, before) = (take(&store, &held).await, take(&store, &back).await);
    store
        .release(&[giving_back(&back, before.token)])
        .await
        .remove(0)
        .expect("released");
    server.restart().await.expect("restarted");
    let again = eventually_async(BOUND, "the same term", || async {
        store.acquire(&held).await.map(granted)
    })
    .await;
    assert_eq!((again.token, again.again), (term.token, true));
    let next = take(&store, &request("back", "c", seconds(300))).await;
    assert!(next.token > before.token, "the token fell");
    assert_eq!(next.predecessor.expect("the record was kept").token, before.token);
}

/// What it forgets, a fence makes good: its clock is the floor of tokens.
#[tokio::test]
async fn nats_that_forgets_says_fence_only_and_tokens_rise_all_the_same() {
    let mut server = NatsServer::start(NatsOptions::default()).await.expect("a server");
    let scratch = Scratch::on(&server.url());
    scratch
        .beneath()
        .await
        .make(serde_json::json!({ "storage": "memory" }))
        .await;
    let store = scratch.store().await;
    let durability = store.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("memory")),
        "{durability:?}"
    );
    let held = request("job", "a", seconds(300));
    let before = take(&store, &held).await;
    server.restart().await.expect("restarted");
    let beneath = scratch.beneath().await;
    if beneath.info().await.get("error").is_some() {
        beneath.make(serde_json::json!({ "storage": "memory" })).await;
    }
    // It is another one to whoever was connected before.
    let store_of_later = scratch.store().await;
    let after = take(&store_of_later, &request("job", "b", seconds(300))).await;
    assert!(
        after.token > before.token,
        "{} after {}",
        after.token,
        before.token
    );
    eventually_async(BOUND, "a refusal", async || {
        let renewed = store.renew(&[renewal(&held, before.token)]).await.remove(0);
        let error = renewed.expect_err("its bucket is gone");
        error
            .message
            .contains("another bucket of this name")
            .then_some(())
            .ok_or(error)
    })
    .await;
}

#[tokio::test]
async fn full_bucket_grants_nothing_loses_nothing_and_says_so() {
    let scratch = Scratch::new().await;
    let beneath = scratch.beneath().await;
    beneath.make(serde_json::json!({ "max_bytes": 4_096 })).await;
    let store = scratch.store().await;
    let held = request("held", "a", seconds(300));
    let term = take(&store, &held).await;
    let mut refused = None;
    for number in 0..100 {
        match store
            .acquire(&request(&format!("job-{number}"), "a", seconds(300)))
            .await
        {
            Ok(answer) => drop(granted(answer)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let error = refused.expect("4 KiB have no room for a hundred records");
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Full, Certainty::NotApplied),
        "{error}"
    );
    assert!(error.message.contains("nats stream edit"), "{error}");
    let lease = store.get(&held.name).await.expect("a read").expect("the record");
    assert_eq!(lease.token, term.token, "what was granted is still there");
}
