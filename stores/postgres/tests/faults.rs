//! Real faults: lost replies, silent, frozen and killed servers. Errors come back bounded, tokens rise.
use crate::common::{PATIENCE, Scratch, renewal, request, seconds, take};
use std::time::{Duration, Instant};
use tenure_conformance::wire::{self, BOUND, Wire, bounded};
use tenure_core::{Certainty, Fault as StoreFault, Interest, LeaseStore, Renewed, Scope, WatchEvent};
use tenure_postgres::PostgresStore;
use tenure_testkit::{Fault, FaultProxy, Postgres, eventually_async};

/// A proxy in front of the shared server.
pub async fn proxied() -> (FaultProxy, Scratch, PostgresStore) {
    proxied_with("").await
}

/// With these options in the store's URL.
pub async fn proxied_with(options: &str) -> (FaultProxy, Scratch, PostgresStore) {
    let server = Postgres::shared().await;
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let scratch = Scratch::new().await;
    let uri = format!("postgres://postgres@{}/postgres", proxy.address());
    let store = PostgresStore::connect(&scratch.url_on(&uri, options))
        .await
        .unwrap();
    (proxy, scratch, store)
}

async fn wire() -> Wire {
    let (proxy, scratch, store) = proxied().await;
    Wire {
        store: Box::new(store),
        proxy,
        acquire: "take",
        renew: &[(1, "renew"), (2, "renew")],
        release: "give_back",
        keep: Box::new(scratch),
    }
}

tenure_conformance::wire_suite!(wire);

/// The driver alone would wait for ever, and its connection never heals.
#[tokio::test]
async fn silent_network_of_postgres_is_given_up_and_works_again_at_once() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    assert!(matches!(
        store.renew(&[renewal(&asked, grant.token)]).await[0],
        Ok(Renewed::Extended { .. })
    ));
    for fault in [Fault::BlackHole, Fault::HalfOpen] {
        proxy.set(fault);
        let renewals = [renewal(&asked, grant.token)];
        let (renewed, read) = bounded("the silence", async {
            tokio::join!(store.renew(&renewals), store.get(&asked.name))
        })
        .await;
        let error = renewed[0].as_ref().unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (StoreFault::TimedOut, Certainty::Unknown),
            "{error}"
        );
        let error = read.unwrap_err();
        assert_eq!(
            (error.fault, error.certainty),
            (StoreFault::TimedOut, Certainty::NotApplied),
            "{error}"
        );
        proxy.heal();
        let renewed = store.renew(&renewals).await;
        assert!(
            matches!(renewed[0], Ok(Renewed::Extended { .. })),
            "{fault:?}: {renewed:?}"
        );
        assert!(store.get(&asked.name).await.unwrap().is_some());
    }
}

/// A request that nobody waits for any more tells nothing; but its connection may be gone, so it is not
/// trusted.
#[tokio::test]
async fn connection_whose_request_was_given_up_is_replaced() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    assert!(matches!(
        store.renew(&renewals).await[0],
        Ok(Renewed::Extended { .. })
    ));
    proxy.set(Fault::BlackHole);
    let given_up = tokio::time::timeout(Duration::from_millis(200), store.renew(&renewals)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    proxy.heal();
    // The old connection stays silent for good.
    let began = Instant::now();
    let renewed = store.renew(&renewals).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    assert!(began.elapsed() < BOUND);
}

/// What is slow is no more than slow; what comes after the bound of a request is unknown, and found by asking
/// again.
#[tokio::test]
async fn delayed_answers_of_postgres_count_for_what_they_are() {
    let (proxy, scratch, store) = proxied().await;
    wire::delayed_answers_count_for_what_they_are(&store, &proxy, &scratch.store().await).await;
}

/// SIGKILL and SIGSTOP of the whole server: what was confirmed stands, and every connection is replaced.
#[tokio::test]
async fn killed_and_frozen_server_keeps_what_it_confirmed() {
    let mut server = Postgres::start().await.unwrap();
    let scratch = Scratch::on(&server.uri()).await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(120));
    let mut last = take(&store, &asked).await.token;
    for round in 2..4 {
        server.kill();
        let lost = bounded("a dead server", store.get(&asked.name))
            .await
            .unwrap_err();
        assert_eq!(lost.fault, StoreFault::Unreachable, "{lost}");
        server.restart().await.unwrap();
        let lease = store.get(&asked.name).await.unwrap().unwrap();
        assert_eq!((lease.token, lease.released), (last, false), "{lease:?}");
        let renewed = store
            .renew(&[tenure_core::Renew {
                attempt: lease.attempt,
                ..renewal(&asked, last)
            }])
            .await;
        assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
        let next = tenure_core::Acquire {
            attempt: tenure_core::Attempt::new(round).unwrap(),
            ..asked.clone()
        };
        let token = take(&store, &next).await.token;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    server.freeze();
    let lost = bounded("a frozen server", store.get(&asked.name))
        .await
        .unwrap_err();
    assert_eq!(lost.fault, StoreFault::TimedOut, "{lost}");
    server.thaw();
    // A connection that was begun in the silence may fail yet.
    let lease = eventually_async(BOUND, "a look", || store.get(&asked.name)).await;
    assert_eq!(lease.unwrap().token, last);
}

/// The end of the listening connection is told, whether it comes with a word or without one, and a new watch
/// works.
#[tokio::test]
async fn broken_watch_of_postgres_says_so_and_the_next_one_hears() {
    let (proxy, _scratch, store) = proxied().await;
    wire::broken_watch_says_so_and_the_next_one_hears(&store, &proxy, StoreFault::Unreachable).await;
}

/// However many there have been, as of who waits for one lock after another.
#[tokio::test]
async fn watches_of_postgres_that_nobody_reads_any_more_do_not_count() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let scope = Scope::Prefix(String::new());
    let mut kept = Vec::new();
    let refused = loop {
        assert!(kept.len() < 10_000, "no bound");
        match store.watch(&scope, Interest::Everything).await {
            Ok(watch) => kept.push(watch),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.fault, StoreFault::Busy, "{refused}");
    assert!(refused.message.contains(&kept.len().to_string()), "{refused}");
    drop(kept);
    let mut watch = bounded("a watch", store.watch(&scope, Interest::Everything))
        .await
        .unwrap();
    take(&store, &request("job", "holder", seconds(60))).await;
    bounded("what it tells", watch.next()).await.unwrap();
}

/// A reader that is too slow is told of a gap, and of what comes after it.
#[tokio::test]
async fn slow_reader_is_told_of_a_gap() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    let notify = format!(
        "SELECT pg_notify('{}.leases', 'vacated ' || n || ' job') FROM generate_series(1, 400) n",
        scratch.schema
    );
    let heard = tokio::time::timeout(PATIENCE, async {
        let mut gaps = 0;
        while gaps == 0 {
            scratch.sql(&notify).await;
            // Nobody reads meanwhile; on a machine where it was not long enough, once more.
            tokio::time::sleep(Duration::from_millis(300)).await;
            while let Ok(event) = tokio::time::timeout(Duration::from_millis(100), watch.next()).await {
                gaps += u32::from(event.unwrap() == WatchEvent::Gap);
            }
        }
        scratch
            .sql("SELECT pg_notify('{schema}.leases', 'vacated 1000 job')")
            .await;
        loop {
            if let WatchEvent::Changed { token, .. } = watch.next().await.unwrap()
                && token.map(|token| token.number()) == Some(1_000)
            {
                return;
            }
        }
    });
    heard.await.expect("the gap and what follows are told");
    for foreign in ["", "what", "taken", "taken x job", "vacated 5", "vacated 5 ../x"] {
        scratch
            .sql(&format!("SELECT pg_notify('{{schema}}.leases', '{foreign}')"))
            .await;
    }
    scratch.sql("TRUNCATE {schema}.leases").await;
    let after = tokio::time::timeout(PATIENCE, async {
        while watch.next().await.unwrap() != WatchEvent::Gap {}
    });
    after.await.expect("what was removed all at once is a gap");
}

/// What was renewed or granted again stands, although its record cannot be read: it is not told as if nothing
/// had happened.
#[tokio::test]
async fn verdict_of_postgres_whose_record_cannot_be_read_leaves_the_write_uncertain() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    scratch
        .sql(
            "ALTER DOMAIN {schema}.candidate_id DROP CONSTRAINT candidate_id_check; \
             UPDATE {schema}.leases SET previous_owner = '', previous_token = 1, previous_end = 'released', \
             previous_at = acquired_at",
        )
        .await;
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
    let again = store.acquire(&asked).await;
    for error in [renewed.unwrap_err(), again.unwrap_err()] {
        let told = (error.fault, error.certainty);
        assert_eq!(told, (StoreFault::Unreadable, Certainty::Unknown), "{error}");
    }
    let rival = store.acquire(&request("job", "rival", seconds(60))).await;
    assert_eq!(rival.unwrap_err().certainty, Certainty::NotApplied);
}
