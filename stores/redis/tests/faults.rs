//! Real faults: lost replies, silent and dead servers. Errors come back bounded, tokens rise, connections heal.

mod common;

use common::{Scratch, connection, giving_back, granted, renewal, request, seconds, shared, take};
use std::time::{Duration, Instant};
use tenure_core::{Certainty, Fault as StoreFault, LeaseStore, Occupancy, Released, Renewed};
use tenure_redis::RedisStore;
use tenure_testkit::{
    Fault, FaultProxy, RedisBuild, RedisOptions, RedisServer, RequestFault, eventually_async,
};

/// The store's own bound on a request is 5 s; the rest is for a loaded machine.
const BOUND: Duration = Duration::from_secs(20);

/// A proxy in front of the shared server, and a store behind it whose scripts the server knows.
async fn proxied() -> (FaultProxy, Scratch, RedisStore) {
    let server = shared(RedisBuild::Redis).await;
    let proxy = FaultProxy::redis(server.address()).expect("a proxy");
    let scratch = Scratch::on(&format!("redis://{}", proxy.address()));
    let store = scratch.store().await;
    let warm = request("warm", "warm", seconds(60));
    let grant = take(&store, &warm).await;
    let renewed = store.renew(&[renewal(&warm, grant.token)]).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    assert_eq!(
        store.release(&[giving_back(&warm, grant.token)]).await[0],
        Ok(Released::Vacated)
    );
    (proxy, scratch, store)
}

async fn bounded<T>(what: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let answer = work.await;
    assert!(began.elapsed() < BOUND, "{what} took {:?}", began.elapsed());
    answer
}

#[tokio::test]
async fn lost_reply_of_an_acquisition_is_resolved_by_its_attempt() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "EVALSHA", RequestFault::CutAfter);
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
async fn request_that_never_arrived_is_unknown_too_and_the_next_one_is_the_first() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "EVALSHA", RequestFault::CutBefore);
    let lost = bounded("the lost request", store.acquire(&asked))
        .await
        .expect_err("the request was lost");
    assert_eq!(lost.certainty, Certainty::Unknown, "{lost}");
    let grant = take(&store, &asked).await;
    assert_eq!((grant.again, grant.terms), (false, 1));
}

#[tokio::test]
async fn request_that_arrives_twice_has_one_term() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "EVALSHA", RequestFault::Duplicate);
    let first = take(&store, &asked).await;
    assert_eq!(proxy.counts().duplicated, 1, "the fault happened");
    let again = take(&store, &asked).await;
    assert_eq!((again.token, again.terms, again.again), (first.token, 1, true));
}

#[tokio::test]
async fn late_duplicate_of_an_acquisition_revives_nothing() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "EVALSHA", RequestFault::DuplicateLater(Duration::from_secs(1)));
    let grant = take(&store, &asked).await;
    assert_eq!(
        store.release(&[giving_back(&asked, grant.token)]).await[0],
        Ok(Released::Vacated)
    );
    tenure_testkit::eventually(Duration::from_secs(30), "the duplicate", || {
        proxy.counts().duplicated == 1
    });
    let lease = store.get(&asked.name).await.expect("a read").expect("the record");
    assert!(lease.released, "a late duplicate took the lease again: {lease:?}");
}

#[tokio::test]
async fn lost_replies_of_renewal_and_release_are_resolved_by_asking_again() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [
        renewal(&asked, grant.token),
        renewal(&request("none", "holder", seconds(60)), grant.token),
    ];
    for fault in [RequestFault::CutBefore, RequestFault::CutAfter] {
        proxy.next_commands(1, "EVALSHA", fault);
        let lost = bounded("the lost reply", store.renew(&renewals)).await;
        assert_eq!(lost.len(), renewals.len());
        let error = lost[0].as_ref().expect_err("the reply was lost");
        assert_eq!(error.certainty, Certainty::Unknown, "{error}");
        let again = store.renew(&renewals).await;
        assert!(matches!(again[0], Ok(Renewed::Extended { .. })), "{again:?}");
        assert_eq!(again[1], Ok(Renewed::Lost(None)));
    }
    proxy.next_commands(1, "EVALSHA", RequestFault::CutAfter);
    let lost = bounded(
        "the lost reply",
        store.release(&[giving_back(&asked, grant.token)]),
    )
    .await;
    assert_eq!(lost[0].as_ref().expect_err("lost").certainty, Certainty::Unknown);
    let again = store.release(&[giving_back(&asked, grant.token)]).await;
    assert_eq!(again[0], Ok(Released::Vacated));
}

#[tokio::test]
async fn silent_network_is_given_up_and_works_again_at_once() {
    for fault in [Fault::BlackHole, Fault::HalfOpen] {
        let (proxy, _scratch, store) = proxied().await;
        let asked = request("job", "holder", seconds(60));
        let grant = take(&store, &asked).await;
        proxy.set(fault);
        let silent = bounded("a silent renewal", store.renew(&[renewal(&asked, grant.token)])).await;
        let error = silent[0].as_ref().expect_err("nothing answered");
        assert_eq!(
            (error.fault, error.certainty),
            (StoreFault::TimedOut, Certainty::Unknown),
            "{error}"
        );
        let read = bounded("a silent read", store.get(&asked.name)).await;
        assert_eq!(
            read.expect_err("nothing answered").certainty,
            Certainty::NotApplied,
            "a read changes nothing"
        );
        // The old connections stay silent for good: only new ones help.
        proxy.heal();
        let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{fault:?}: {renewed:?}"
        );
        assert!(store.get(&asked.name).await.expect("a read").is_some());
    }
}

/// The engine gives up long before the store's own bound. A connection that nobody hears of must be replaced then,
/// too, or the term is lost although the network is well again.
#[tokio::test]
async fn silent_connection_is_replaced_although_every_caller_gives_up_first() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    proxy.set(Fault::BlackHole);
    let renewals = [renewal(&asked, grant.token)];
    let impatient = tokio::time::timeout(Duration::from_millis(300), store.renew(&renewals));
    assert!(impatient.await.is_err(), "nothing answers");
    proxy.heal();
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
    assert!(
        matches!(renewed, Ok(Renewed::Extended { .. })),
        "the old connection was used: {renewed:?}"
    );
}

#[tokio::test]
async fn closed_connection_is_replaced_before_the_next_request() {
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

#[tokio::test]
async fn renewals_have_a_connection_of_their_own() {
    let server = RedisServer::start(RedisOptions::default())
        .await
        .expect("a server");
    let scratch = Scratch::on(&server.url());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let _renewed = store.renew(&[renewal(&asked, grant.token)]).await;
    let list: String = redis::cmd("CLIENT")
        .arg("LIST")
        .query_async(&mut connection(&server.url()).await)
        .await
        .expect("the test can ask");
    let running = list.lines().filter(|line| line.contains("cmd=eval")).count();
    assert_eq!(running, 2, "{list}");
}

#[tokio::test]
async fn delayed_answers_count_for_what_they_are() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let pause = Duration::from_millis(700);
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
async fn refused_connections_are_told_as_not_applied() {
    let (proxy, _scratch, store) = proxied().await;
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    let asked = request("job", "holder", seconds(60));
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
async fn frozen_server_is_given_up_and_loses_nothing() {
    let server = RedisServer::start(RedisOptions::durable())
        .await
        .expect("a server");
    let store = Scratch::on(&server.url()).store().await;
    let asked = request("job", "holder", seconds(300));
    let grant = take(&store, &asked).await;
    server.freeze();
    let silent = bounded("a frozen renewal", store.renew(&[renewal(&asked, grant.token)])).await;
    assert_eq!(
        silent[0].as_ref().expect_err("frozen").fault,
        StoreFault::TimedOut
    );
    server.thaw();
    let renewed = eventually_async(BOUND, "a renewal", || async {
        store.renew(&[renewal(&asked, grant.token)]).await.remove(0)
    })
    .await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
}

/// The scripts are gone with the server, and are sent again.
#[tokio::test]
async fn durable_server_that_is_killed_keeps_terms_and_tokens() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let mut server = RedisServer::start(RedisOptions::durable().of(build))
            .await
            .expect("a server");
        let store = Scratch::on(&server.url()).store().await;
        let (held, given_back) = (
            request("held", "a", seconds(300)),
            request("back", "b", seconds(300)),
        );
        let (term, before) = (take(&store, &held).await, take(&store, &given_back).await);
        store
            .release(&[giving_back(&given_back, before.token)])
            .await
            .remove(0)
            .expect("released");
        server.restart().await.expect("restarted");
        let again = eventually_async(BOUND, "the same term", || async {
            store.acquire(&held).await.map(granted)
        })
        .await;
        assert_eq!((again.token, again.again), (term.token, true), "{build:?}");
        let next = take(&store, &request("back", "c", seconds(300))).await;
        assert!(next.token > before.token, "{build:?}: the token fell");
        assert_eq!(next.predecessor.expect("the record was kept").token, before.token);
    }
}

/// It forgets who leads, as its traits say; tokens rise all the same, since its clock is their floor.
#[tokio::test]
async fn server_that_forgets_says_fence_only_and_tokens_rise_all_the_same() {
    let mut server = RedisServer::start(RedisOptions::default())
        .await
        .expect("a server");
    let store = Scratch::on(&server.url()).store().await;
    let durability = store.traits().durability;
    assert!(
        matches!(durability, tenure_core::Durability::FenceOnly(_)),
        "{durability:?}"
    );
    let held = request("job", "a", seconds(300));
    let before = take(&store, &held).await;
    server.restart().await.expect("restarted");
    let after = eventually_async(BOUND, "another term", || async {
        store
            .acquire(&request("job", "b", seconds(300)))
            .await
            .map(granted)
    })
    .await;
    assert!(
        after.token > before.token,
        "{} after {}",
        after.token,
        before.token
    );
    let lost = store
        .renew(&[renewal(&held, before.token)])
        .await
        .remove(0)
        .expect("answered");
    let Renewed::Lost(Some(now)) = lost else {
        panic!("the old term was extended: {lost:?}")
    };
    assert_eq!((now.token, now.occupancy()), (after.token, Occupancy::Held));
}
