//! Real faults: lost replies, silent and dead servers. Errors come back bounded, tokens rise, connections
//! heal.

use crate::common::{Scratch, connection, giving_back, granted, proxied, renewal, request, seconds, take};
use std::time::Duration;
use tenure_conformance::wire::{BOUND, Wire, bounded};
use tenure_core::{Certainty, Fault as StoreFault, LeaseStore, Occupancy, Renewed};
use tenure_testkit::{Fault, RedisBuild, RedisOptions, RedisServer, eventually_async};

async fn wire() -> Wire {
    let (proxy, scratch, store) = proxied().await;
    Wire {
        store: Box::new(store),
        proxy,
        acquire: "EVALSHA",
        renew: &[(1, "EVALSHA"), (2, "EVALSHA")],
        release: "EVALSHA",
        keep: Box::new(scratch),
    }
}

tenure_conformance::wire_suite!(wire);

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

/// The engine gives up long before the store's own bound. A connection that nobody hears of must be replaced
/// then, too, or the term is lost although the network is well again.
#[tokio::test]
async fn silent_connection_is_replaced_although_every_caller_gives_up_first() {
    replaced_after_callers_gave_up(1, Duration::from_millis(300)).await;
}

/// With a short ttl none of them has the time that would prove the connection silent: all together they have.
#[tokio::test]
async fn silent_connection_is_replaced_although_every_caller_gives_up_at_once() {
    replaced_after_callers_gave_up(5, Duration::from_millis(60)).await;
}

async fn replaced_after_callers_gave_up(callers: u32, patience: Duration) {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    proxy.set(Fault::BlackHole);
    let renewals = [renewal(&asked, grant.token)];
    for _ in 0..callers {
        let impatient = tokio::time::timeout(patience, store.renew(&renewals));
        assert!(impatient.await.is_err(), "nothing answers");
    }
    proxy.heal();
    let renewed = store.renew(&renewals).await.remove(0);
    assert!(
        matches!(renewed, Ok(Renewed::Extended { .. })),
        "the old connection was used: {renewed:?}"
    );
}

/// A dial that ended with its caller would be begun anew by each, and no caller would ever have a connection.
#[tokio::test]
async fn who_has_less_time_than_connecting_takes_is_served_all_the_same() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    // To connect takes two questions at least, which is longer than the callers wait; their own request is
    // one.
    let (pause, patience) = (Duration::from_millis(400), Duration::from_millis(700));
    proxy.set(Fault::Delay {
        to_server: pause,
        to_client: Duration::ZERO,
    });
    proxy.cut_connections();
    let granted = eventually_async(BOUND, "a term", || async {
        let answer = tokio::time::timeout(patience, store.acquire(&asked)).await;
        answer.ok().and_then(Result::ok).map(granted)
    })
    .await;
    proxy.heal();
    assert_eq!(take(&store, &asked).await.token, granted.token);
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
    let renewals = [renewal(&asked, grant.token)];
    // The first renewal of all has a connection to make, which the frozen server's system accepts, and nobody
    // answers. Of one that is open, nobody knows what was done with what it was sent.
    for (told, words) in [
        (
            (StoreFault::Unreachable, Certainty::NotApplied),
            "no Redis server answered at 127.0.0.1",
        ),
        ((StoreFault::TimedOut, Certainty::Unknown), "127.0.0.1"),
    ] {
        server.freeze();
        let silent = bounded("a frozen renewal", store.renew(&renewals)).await;
        let error = silent[0].as_ref().expect_err("frozen");
        assert_eq!((error.fault, error.certainty), told, "{error}");
        assert!(error.message.contains(words), "{error}");
        server.thaw();
        let renewed = eventually_async(BOUND, "a renewal", || async {
            store.renew(&renewals).await.remove(0)
        })
        .await;
        assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    }
}

/// Its script is nobody's of Tenure, and it never ends by itself.
#[tokio::test]
async fn server_that_a_script_occupies_has_done_nothing_and_says_what_ends_it() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let options = RedisOptions::with("--lua-time-limit 50");
        let server = RedisServer::start(options.of(build)).await.expect("a server");
        let store = Scratch::on(&server.url()).store().await;
        let asked = request("job", "holder", seconds(300));
        let renewals = [renewal(&asked, take(&store, &asked).await.token)];
        let renewed = store.renew(&renewals).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        let mut occupier = connection(&server.url()).await;
        let endless = redis::cmd("EVAL").arg(&["while true do end", "0"]).to_owned();
        let running = tokio::spawn(async move { endless.query_async::<()>(&mut occupier).await });
        let rival = request("other", "rival", seconds(300));
        let busy = eventually_async(BOUND, "a server that is busy", || async {
            let refused = store.acquire(&rival).await.err()?;
            (refused.fault == StoreFault::Busy).then_some(refused)
        })
        .await;
        for error in [
            busy,
            store.renew(&renewals).await.remove(0).expect_err("extended"),
        ] {
            assert_eq!(
                (error.fault, error.certainty),
                (StoreFault::Busy, Certainty::NotApplied),
                "{build:?}: {error}"
            );
            assert!(error.message.contains("SCRIPT KILL"), "{build:?}: {error}");
        }
        assert_eq!(server.ask("SCRIPT KILL").expect("asked"), "+OK");
        let ended = running.await.expect("no panic");
        ended.expect_err("it never ends by itself");
        let renewed = store.renew(&renewals).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{build:?}: {renewed:?}"
        );
    }
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
