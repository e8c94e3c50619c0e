//! Hosts of which one is dead: frozen, vanished, or no more than polite.
use crate::common::{PATIENCE, Scratch, giving_back, renewal, request, seconds, take};
use crate::faults::proxied;
use crate::standbys::pair;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_conformance::wire::bounded;
use tenure_core::{
    Acquired, Certainty, Fault as Cause, Interest, LeaseStore, Released, Renewed, Scope, WatchEvent,
};
use tenure_postgres::PostgresStore;
use tenure_testkit::{Fault, FaultProxy, Postgres, VanishedHost, eventually_async};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// A frozen machine's system still takes connections. The old primary stays frozen, and the store comes past
/// it: the one that had a connection to it, and one that has none yet. Thawed, the old one greets and
/// confirms no write any more.
#[tokio::test]
async fn frozen_primary_is_passed_by_once_its_standby_is_promoted() {
    let (primary, standby, both) = pair().await;
    let store = PostgresStore::connect(&both).await.unwrap();
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    primary.freeze();
    standby.promote().await.unwrap();
    let renewed_by = |store| extended(store, &beat, Duration::from_secs(1));
    eventually_async(PATIENCE, "a renewal past the frozen primary", || {
        renewed_by(&store)
    })
    .await;
    let fresh = PostgresStore::connect(&both).await.unwrap();
    eventually_async(PATIENCE, "a renewal of a fresh store", || renewed_by(&fresh)).await;
    primary.thaw();
    let late = PostgresStore::connect(&both).await.unwrap();
    eventually_async(PATIENCE, "a renewal past the thawed primary", || {
        renewed_by(&late)
    })
    .await;
}

async fn extended(store: &PostgresStore, beat: &[tenure_core::Renew; 1], patience: Duration) -> bool {
    let renewed = timeout(patience, store.renew(beat)).await;
    matches!(renewed.as_deref(), Ok([Ok(Renewed::Extended { .. })]))
}

/// As an engine's renewals, each of which has a tenth of the ttl: the dial takes longer than any of them.
#[tokio::test]
async fn vanished_host_is_passed_by_although_every_caller_gives_up_before_the_dial_does() {
    let proxy = FaultProxy::postgres(Postgres::shared().await.address()).unwrap();
    let vanished = VanishedHost::new().await.unwrap();
    let scratch = Scratch::new().await;
    let both = format!(
        "postgres://postgres@{},{}/postgres",
        vanished.address(),
        proxy.address()
    );
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    let asked = request("job", "holder", seconds(300));
    let beat = [renewal(&asked, take(&store, &asked).await.token)];
    for fault in [None, Some(Fault::BlackHole), None] {
        let renewed = store.renew(&beat).await.remove(0);
        assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
        match fault {
            None => proxy.cut_connections(),
            // Given up, the host that fell silent is left for the one that has vanished.
            Some(fault) => {
                proxy.set(fault);
                assert!(!extended(&store, &beat, Duration::from_millis(300)).await);
                proxy.heal();
            }
        }
        eventually_async(PATIENCE, &format!("a renewal after {fault:?}"), || {
            extended(&store, &beat, Duration::from_millis(500))
        })
        .await;
    }
}

/// An old primary that takes no new connections, and still answers on the one that listens: what the requests
/// change elsewhere would not be told there.
#[tokio::test]
async fn watch_ends_on_a_host_that_answers_and_that_the_requests_have_left() {
    let old = Postgres::start().await.unwrap();
    old.execute("CREATE DATABASE jobs").await.unwrap();
    let scratch = Scratch::on(&old.uri_of("jobs")).await;
    let new = old.standby().await.unwrap();
    new.promote().await.unwrap();
    let both = format!("postgres://postgres@{},{}/jobs", old.address(), new.address());
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    let asked = request("job", "holder", seconds(300));
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    old.execute("ALTER DATABASE jobs ALLOW_CONNECTIONS false")
        .await
        .unwrap();
    // All but the one that listens, which is asked nothing but whether it is there.
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE datname = 'jobs' AND query NOT LIKE 'LISTEN%' AND query <> ''";
    old.execute(others).await.unwrap();
    let is_taken = || async { matches!(store.acquire(&asked).await, Ok(Acquired::Granted(_))) };
    eventually_async(PATIENCE, "a term at the other host", is_taken).await;
    // One that begins now is where the requests are.
    let mut next = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    let token = store.get(&asked.name).await.unwrap().unwrap().token;
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    let told = timeout(PATIENCE, next.next()).await.expect("it is told");
    assert!(matches!(told, Ok(WatchEvent::Changed { .. })), "{told:?}");
    let ended = timeout(PATIENCE, async { while watch.next().await.is_ok() {} });
    ended.await.expect("it ends");
}

/// It waits for a row that somebody keeps locked. The next connection would be tried elsewhere first; none
/// was made there.
#[tokio::test]
async fn watch_goes_on_where_one_request_was_given_up() {
    let server = Postgres::shared().await;
    let scratch = Scratch::new().await;
    let nobody = tenure_testkit::free_port();
    let both = format!(
        "postgres://postgres@{},127.0.0.1:{nobody}/postgres",
        server.address()
    );
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    let asked = request("job", "holder", seconds(300));
    let token = take(&store, &asked).await.token;
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    let client = Postgres::client(&server.uri()).await.unwrap();
    let locks = format!("BEGIN; SELECT FROM {}.leases FOR UPDATE", scratch.schema);
    client.batch_execute(&locks).await.unwrap();
    let giving_back = [giving_back(&asked, token)];
    let mut given_up = false;
    for _round in 0..ROUNDS_MAX {
        // Half a second later it would be told that the lease is busy, which also is so on a machine that
        // stands still meanwhile.
        let release = timeout(Duration::from_millis(100), store.release(&giving_back)).await;
        given_up = release.is_err();
        if given_up {
            break;
        }
    }
    assert!(given_up, "each was answered, in {ROUNDS_MAX} rounds");
    client.batch_execute("ROLLBACK").await.unwrap();
    // Longer than between two looks at the connection that listens.
    let ended = timeout(Duration::from_secs(7), async {
        while watch.next().await.is_ok() {}
    })
    .await;
    assert!(ended.is_err(), "the watch has ended");
}

/// Each host's reason is told, and none of them has the password.
#[tokio::test]
async fn every_host_is_told_of_when_none_will_do() {
    let vanished = VanishedHost::new().await.unwrap();
    let nobody = tenure_testkit::free_port();
    let url = format!(
        "postgres://me:hunter2@{},127.0.0.1:{nobody}/db",
        vanished.address()
    );
    let error = bounded("connecting", PostgresStore::connect(&url))
        .await
        .unwrap_err();
    assert_eq!(error.certainty, Certainty::NotApplied);
    for said in [
        format!("at {}/db.tenure: ", vanished.address()),
        format!("at 127.0.0.1:{nobody}/db.tenure: "),
    ] {
        assert!(error.message.contains(&said), "{error}");
    }
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

/// A standby that was never told of the role, say, while the primary is started anew: that must end nobody's
/// campaign.
#[tokio::test]
async fn refusal_of_one_host_is_a_mistake_only_where_every_host_refuses() {
    let there = Postgres::shared().await.address();
    let gone = format!("127.0.0.1:{}", tenure_testkit::free_port());
    let told_of = async |hosts: [&String; 2]| {
        let [one, other] = hosts;
        let url = format!("postgres://postgres@{one},{other}/no_such_database");
        let error = PostgresStore::connect(&url).await.unwrap_err();
        for host in hosts {
            assert!(error.message.contains(host), "{error}");
        }
        error.fault
    };
    assert_eq!(told_of([&there, &gone]).await, Cause::Unreachable);
    assert_eq!(told_of([&gone, &there]).await, Cause::Unreachable);
    assert_eq!(told_of([&there, &there]).await, Cause::Invalid);
}

/// Each of them has the whole bound, and none of them the sum of those before it.
#[tokio::test]
async fn watches_that_begin_in_a_silence_wait_side_by_side() {
    let (proxy, _scratch, store) = proxied().await;
    proxy.set(Fault::BlackHole);
    let scope = Scope::Prefix(String::new());
    let begin = || async { store.watch(&scope, Interest::Everything).await.is_err() };
    let refused = bounded("watches in a silence", async {
        let four = || async { tokio::join!(begin(), begin(), begin(), begin()) };
        tokio::join!(four(), four(), four(), four())
    });
    let four = (true, true, true, true);
    assert_eq!(refused.await, (four, four, four, four));
    proxy.heal();
    bounded("a watch after it", store.watch(&scope, Interest::Everything))
        .await
        .unwrap();
}

/// One finds out that the connection is silent, and all of them have the next one, within the bound of each.
#[tokio::test]
async fn watches_that_begin_on_a_silent_connection_have_another() {
    let (proxy, _scratch, store) = proxied().await;
    let scope = Scope::Prefix(String::new());
    bounded("a watch before it", store.watch(&scope, Interest::Everything))
        .await
        .unwrap();
    // What has lost something stays silent for good. Nothing but the connection that listens is used
    // meanwhile.
    let swallowed = proxy.counts().swallowed_requests;
    proxy.set(Fault::BlackHole);
    let heal = async {
        let lost = || async { proxy.counts().swallowed_requests > swallowed };
        eventually_async(PATIENCE, "a question that was lost", lost).await;
        proxy.heal();
    };
    let begin = || async { store.watch(&scope, Interest::Everything).await.map(drop) };
    let four = || async { tokio::join!(begin(), begin(), begin(), begin()) };
    let began = bounded("watches", async {
        tokio::join!(four(), four(), four(), four(), heal)
    });
    let four = (Ok(()), Ok(()), Ok(()), Ok(()));
    assert_eq!(began.await, (four.clone(), four.clone(), four.clone(), four, ()));
}

/// The host that answered last is asked first: one that is dead costs its bound once, and not at every cut.
#[tokio::test]
async fn host_that_answered_last_is_dialled_first() {
    let proxy = FaultProxy::postgres(Postgres::shared().await.address()).unwrap();
    let dead = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = dead.local_addr().unwrap();
    let dials = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dials);
    tokio::spawn(async move {
        while let Ok((hung_up_on, _)) = dead.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(hung_up_on);
        }
    });
    let scratch = Scratch::new().await;
    let both = format!("postgres://postgres@{address},{}/postgres", proxy.address());
    let store = PostgresStore::connect(&scratch.url_on(&both, "")).await.unwrap();
    assert_ne!(dials.load(Ordering::SeqCst), 0);
    let name = request("job", "holder", seconds(300)).name;
    for _round in 0..ROUNDS_MAX {
        let dialled = dials.load(Ordering::SeqCst);
        proxy.cut_connections();
        eventually_async(PATIENCE, "a connection after the cut", || async {
            store.get(&name).await.is_ok()
        })
        .await;
        if dials.load(Ordering::SeqCst) == dialled {
            return;
        }
        // A login that takes long has the next host tried beside it: on such a machine, once more.
    }
    panic!("the dead host was dialled in each of {ROUNDS_MAX} rounds");
}

/// How often a machine may be too slow for what a test must meet.
const ROUNDS_MAX: u32 = 10;
