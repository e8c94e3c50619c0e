//! Real faults: lost replies, silent, frozen and killed servers. Errors come back bounded, tokens rise.
use crate::common::{PATIENCE, Scratch, giving_back, renewal, request, seconds, take};
use std::time::{Duration, Instant};
use tenure_conformance::wire::{self, BOUND, Wire, bounded};
use tenure_core::{Acquired, Certainty, Fault as StoreFault, LeaseStore, Renewed, Scope, WatchEvent};
use tenure_postgres::PostgresStore;
use tenure_testkit::{Fault, FaultProxy, Postgres, eventually_async};

/// A proxy in front of the shared server.
async fn proxied() -> (FaultProxy, Scratch, PostgresStore) {
    let server = Postgres::shared().await;
    let proxy = FaultProxy::postgres(server.address()).unwrap();
    let scratch = Scratch::new().await;
    let uri = format!("postgres://postgres@{}/postgres", proxy.address());
    let store = PostgresStore::connect(&scratch.url_on(&uri, "")).await.unwrap();
    (proxy, scratch, store)
}

async fn wire() -> Wire {
    let (proxy, scratch, store) = proxied().await;
    Wire {
        store: Box::new(store),
        proxy,
        acquire: "acquire",
        renew: &[(1, "renew"), (2, "renew")],
        release: "release",
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

/// A request that nobody waits for any more tells nothing; but its connection may be gone, so it is not trusted.
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

/// What blocks the other connections, a row that somebody keeps locked, does not block renewals of other leases.
#[tokio::test]
async fn locked_row_holds_up_nothing_but_its_own_lease() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let (one, two) = (
        request("one", "holder", seconds(60)),
        request("two", "holder", seconds(60)),
    );
    let (first, second) = (take(&store, &one).await, take(&store, &two).await);
    let mut client = scratch.client().await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!(
        "SELECT 1 FROM {}.leases WHERE name = 'one' FOR UPDATE",
        scratch.schema
    );
    transaction.execute(&lock, &[]).await.unwrap();
    let renewals = [renewal(&one, first.token), renewal(&two, second.token)];
    let renewed = bounded("a batch", store.renew(&renewals)).await;
    let error = renewed[0].as_ref().unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::NotApplied),
        "{error}"
    );
    assert!(matches!(renewed[1], Ok(Renewed::Extended { .. })), "{renewed:?}");
    let error = bounded("an acquisition", store.acquire(&one)).await.unwrap_err();
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::NotApplied),
        "{error}"
    );
    // Whoever only finds that it is held needs no lock.
    let rival = store
        .acquire(&request("one", "rival", seconds(60)))
        .await
        .unwrap();
    assert!(matches!(rival, Acquired::Held(_)), "{rival:?}");
    transaction.rollback().await.unwrap();
    assert!(matches!(
        store.renew(&renewals).await[0],
        Ok(Renewed::Extended { .. })
    ));
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
    assert_eq!(store.get(&asked.name).await.unwrap().unwrap().token, last);
}

/// The primary dies in the middle of a term, and its synchronous standby takes over: the term goes on, and nothing that was
/// confirmed is lost.
#[tokio::test]
async fn term_outlives_a_primary_whose_standby_is_promoted() {
    let mut primary = Postgres::start().await.unwrap();
    let standby = primary.standby().await.unwrap();
    let synchronous = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    primary.execute(synchronous).await.unwrap();
    primary.execute("SELECT pg_reload_conf()").await.unwrap();
    let scratch = Scratch::on(&primary.uri()).await;
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        primary.address(),
        standby.address()
    );
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    assert_eq!(store.traits().durability, tenure_core::Durability::Safe);
    let (held, vacant) = (
        request("held", "a", seconds(300)),
        request("vacant", "a", seconds(300)),
    );
    let token = take(&store, &held).await.token;
    let before = take(&store, &vacant).await.token;
    let released = store.release(&[giving_back(&vacant, before)]).await;
    assert!(released[0].is_ok(), "{released:?}");
    // A release does not wait for the standby; a term does, and brings what came before it with it.
    let renewed = store.renew(&[renewal(&held, token)]).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    primary.kill();
    let lost = bounded("without a primary", store.get(&held.name))
        .await
        .unwrap_err();
    assert_eq!(lost.fault, StoreFault::Unreachable, "{lost}");
    standby.promote().await.unwrap();
    eventually_async(PATIENCE, "a renewal at the new primary", || async {
        let verdict = store.renew(&[renewal(&held, token)]).await.remove(0);
        assert!(!matches!(verdict, Ok(Renewed::Lost(_))), "{verdict:?}");
        matches!(verdict, Ok(Renewed::Extended { .. }))
    })
    .await;
    let rival = store.acquire(&request("held", "b", seconds(300))).await;
    assert!(
        matches!(rival, Ok(Acquired::Held(ref lease)) if lease.token == token),
        "{rival:?}"
    );
    let after = take(&store, &request("vacant", "b", seconds(300))).await.token;
    assert!(after > before, "{after} after {before}");
}

/// The end of the listening connection is told, whether it comes with a word or without one, and a new watch works.
#[tokio::test]
async fn broken_watch_of_postgres_says_so_and_the_next_one_hears() {
    let (proxy, _scratch, store) = proxied().await;
    wire::broken_watch_says_so_and_the_next_one_hears(&store, &proxy, StoreFault::Unreachable).await;
}

/// A reader that is too slow is told of a gap, and of what comes after it.
#[tokio::test]
async fn slow_reader_is_told_of_a_gap() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut watch = store.watch(&Scope::Prefix(String::new())).await.unwrap();
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
