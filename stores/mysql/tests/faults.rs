//! Real faults: lost replies, silent, frozen and killed servers. Errors come back bounded, tokens rise.
use crate::common::{PATIENCE, Scratch, family, giving_back, proxied, renewal, request, seconds, take};
use mysql_async::prelude::Queryable as _;
use std::time::{Duration, Instant};
use tenure_conformance::wire::{self, BOUND, Wire, bounded};
use tenure_core::{
    Acquire, Acquired, Ask, Attempt, Certainty, Fault as StoreFault, LeaseStore, Renewed, Wish,
};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Fault, Mariadb, SqlFamily, eventually_async};

async fn wire() -> Wire {
    let (proxy, scratch, store) = proxied().await;
    Wire {
        store: Box::new(store),
        proxy,
        acquire: "tenure_acquire_1",
        renew: &[(1, "tenure_renew_1"), (2, "tenure_renew_1")],
        release: "tenure_release_1",
        keep: Box::new(scratch),
    }
}

tenure_conformance::wire_suite!(wire);

/// The driver alone would wait for ever, and its pool as well.
#[tokio::test]
async fn silent_network_of_mysql_is_given_up_and_works_again_at_once() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    assert!(matches!(
        store.renew(&renewals).await[0],
        Ok(Renewed::Extended { .. })
    ));
    let mut faults = vec![Fault::HalfOpen, Fault::BlackHole];
    for _round in 0..ROUNDS_MAX {
        let Some(fault) = faults.pop() else { return };
        // Just used, the connections are believed to be there.
        assert!(matches!(
            store.renew(&renewals).await[0],
            Ok(Renewed::Extended { .. })
        ));
        assert!(store.get(&asked.name).await.unwrap().is_some());
        proxy.set(fault);
        let (renewed, read) = bounded("the silence", async {
            tokio::join!(store.renew(&renewals), store.get(&asked.name))
        })
        .await;
        let silent = renewed[0].as_ref().unwrap_err();
        assert_eq!(silent.fault, StoreFault::TimedOut, "{silent}");
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
        if silent.certainty != Certainty::Unknown {
            // On a machine so slow that the connection was asked first whether it is there, once more.
            faults.push(fault);
        }
    }
    assert!(
        faults.is_empty(),
        "{faults:?}: no renewal was sent into the silence"
    );
}

/// How often a machine may be too slow for what a test must meet.
const ROUNDS_MAX: u32 = 10;

/// A request that nobody waits for any more tells nothing; but its connection may be gone, so it is not
/// trusted.
#[tokio::test]
async fn connection_to_mysql_whose_request_was_given_up_is_replaced() {
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

/// A dial that ended with its caller would be begun anew by each, and no caller would ever have a connection.
#[tokio::test]
async fn who_has_less_time_than_a_login_to_mysql_takes_is_served_all_the_same() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    // A login waits for three answers, which is longer than the callers have; their own request waits for
    // one.
    let (pause, patience) = (Duration::from_millis(450), Duration::from_millis(1_300));
    proxy.set(Fault::Delay {
        to_server: Duration::ZERO,
        to_client: pause,
    });
    proxy.cut_connections();
    let token = eventually_async(2 * PATIENCE, "a term", || async {
        let answer = tokio::time::timeout(patience, store.acquire(&asked)).await;
        match answer {
            Ok(Ok(Acquired::Granted(grant))) => Some(grant.token),
            _ => None,
        }
    })
    .await;
    proxy.heal();
    assert_eq!(take(&store, &asked).await.token, token);
}

/// What is slow is no more than slow; what comes after the bound of a request is unknown, and found by asking
/// again.
#[tokio::test]
async fn delayed_answers_of_mysql_count_for_what_they_are() {
    let (proxy, scratch, store) = proxied().await;
    wire::delayed_answers_count_for_what_they_are(&store, &proxy, &scratch.store().await).await;
}

/// One that the server closed while nobody used it costs no request: an uncertain one would cost a look.
#[tokio::test]
async fn connections_that_were_closed_while_idle_cost_no_request() {
    let (proxy, _scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let renewals = [renewal(&asked, grant.token)];
    assert!(matches!(
        store.renew(&renewals).await[0],
        Ok(Renewed::Extended { .. })
    ));
    proxy.cut_connections();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let renewed = store.renew(&renewals).await;
    assert!(matches!(renewed[0], Ok(Renewed::Extended { .. })), "{renewed:?}");
    assert!(take(&store, &asked).await.again);
}

/// A request leaves its session as it was: whoever gets the connection next, from a pooler, finds nothing of
/// it.
#[tokio::test]
async fn no_request_leaves_anything_in_its_session() {
    let scratch = Scratch::new().await;
    for autocommit in ["ON", "OFF"] {
        leaves_its_session_as_it_was(&scratch, autocommit).await;
    }
    // Nor does what a session is set to change a decision.
    let store = scratch.store().await;
    let lease = store.get(&crate::common::name("job")).await.unwrap().unwrap();
    assert!(lease.remaining > Duration::from_secs(30), "{lease:?}");
}

async fn leaves_its_session_as_it_was(scratch: &Scratch, autocommit: &str) {
    let mut client = scratch.client().await;
    let settings = "SET SESSION innodb_lock_wait_timeout = 33, SESSION group_concat_max_len = 4444, SESSION sql_mode = 'ANSI', \
             SESSION time_zone = '+11:00', SESSION completion_type = 'CHAIN'; SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE";
    client.query_drop(settings).await.unwrap();
    client
        .query_drop(format!("SET SESSION autocommit = {autocommit}"))
        .await
        .unwrap();
    // MariaDB's newer versions know both names.
    let [isolation, open] = match family() {
        SqlFamily::Mariadb => ["@@tx_isolation", "@@in_transaction"],
        SqlFamily::Mysql => [
            "@@transaction_isolation",
            "(SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID())",
        ],
    };
    let look = format!(
        "SELECT @@innodb_lock_wait_timeout, @@group_concat_max_len, @@sql_mode, {isolation}, @@autocommit, {open}"
    );
    type Session = (u64, u64, String, String, u8, u8);
    let before: Session = client.query_first(&look).await.unwrap().unwrap();
    let held = "X'686f6c646572', REPEAT('a', 32), 1, 60000, ''";
    for (statement, fails) in [
        (format!("CALL tenure_acquire_1('job', {held})"), false),
        (format!("CALL tenure_acquire_1('job', {held})"), false),
        (
            "CALL tenure_acquire_1('job', 'rival', REPEAT('b', 32), 1, 60000, '')".to_owned(),
            false,
        ),
        (
            "CALL tenure_acquire_1('bad', 'me', 'short', 1, 60000, '')".to_owned(),
            true,
        ),
        (
            "CALL tenure_renew_1('[[\"6a6f62\",\"x\",1,1,100]]')".to_owned(),
            false,
        ),
        ("CALL tenure_renew_1('no json')".to_owned(), true),
        ("CALL tenure_release_1('[]')".to_owned(), false),
        ("CALL tenure_ask_1('job', 1)".to_owned(), false),
        ("CALL tenure_claim_1('ledger', 'nightly', 5)".to_owned(), false),
        ("CALL tenure_claim_1('..', 'nightly', 5)".to_owned(), true),
        ("CALL tenure_bump_1('ledger', NULL, NULL)".to_owned(), false),
        ("CALL tenure_bump_1('..', NULL, NULL)".to_owned(), true),
        ("CALL tenure_wait_1('%', '', 0)".to_owned(), false),
    ] {
        let answer = client.query_drop(&statement).await;
        assert_eq!(answer.is_err(), fails, "{statement}: {answer:?}");
        let after: Session = client.query_first(&look).await.unwrap().unwrap();
        assert_eq!(after, before, "after {statement} with autocommit {autocommit}");
    }
}

/// SIGKILL and SIGSTOP of the whole server: what was confirmed stands, and every connection is replaced.
#[tokio::test]
async fn killed_and_frozen_mysql_keeps_what_it_confirmed() {
    let mut server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
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
        let next = Acquire {
            attempt: Attempt::new(round).unwrap(),
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

/// A server that is demoted decides nothing any more, also for a role that may write all the same, and goes
/// on when it is made primary again.
#[tokio::test]
async fn mysql_that_is_demoted_decides_nothing_any_more() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    server.execute("SET GLOBAL read_only = ON").await.unwrap();
    let renewals = [renewal(&asked, grant.token)];
    let rival = request("job", "rival", seconds(60));
    let wish = Ask {
        name: asked.name.clone(),
        token: grant.token,
    };
    let both = [giving_back(&rival, grant.token), giving_back(&asked, grant.token)];
    for error in [
        store.renew(&renewals).await.remove(0).map(drop).unwrap_err(),
        store.acquire(&rival).await.map(drop).unwrap_err(),
        store.get(&asked.name).await.map(drop).unwrap_err(),
        store.ask(&wish).await.map(drop).unwrap_err(),
        // Of several, as one alone may be given back the short way.
        store.release(&both).await.remove(0).map(drop).unwrap_err(),
    ] {
        assert_eq!(
            (error.fault, error.certainty),
            (StoreFault::Unreachable, Certainty::NotApplied),
            "{error}"
        );
    }
    let refused = MysqlStore::connect(&scratch.url()).await.unwrap_err();
    assert_eq!(refused.fault, StoreFault::ReadOnly, "{refused}");
    server.execute("SET GLOBAL read_only = OFF").await.unwrap();
    let renewed = store.renew(&renewals).await.remove(0);
    assert!(
        matches!(
            renewed,
            Ok(Renewed::Extended {
                wish: Wish::Nothing,
                ..
            })
        ),
        "{renewed:?}"
    );
}

/// The rows of a batch come before its commit: if that fails, nothing was extended.
#[tokio::test]
async fn error_that_comes_after_the_rows_of_a_batch_counts() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    scratch
        .sql(
            "DROP PROCEDURE tenure_renew_1; CREATE PROCEDURE tenure_renew_1(IN asked JSON) BEGIN SELECT 1, 'extended', name, \
             owner, incarnation, token, attempt, terms, ttl_ms, 0, 0, 60000000, 0, 0, note, NULL, NULL, NULL, NULL FROM \
             tenure_leases; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the commit failed'; END",
        )
        .await;
    let renewed = store.renew(&[renewal(&asked, grant.token)]).await;
    let error = renewed[0].as_ref().unwrap_err();
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
    assert!(error.message.contains("the commit failed"), "{error}");
    assert!(store.get(&asked.name).await.unwrap().is_some());
}

/// A thousand leases are one request, with a verdict for each.
#[tokio::test]
async fn thousand_leases_are_renewed_in_one_request() {
    let (proxy, _scratch, store) = proxied().await;
    let (mut renewals, mut taking) = (Vec::new(), tokio::task::JoinSet::new());
    let store = std::sync::Arc::new(store);
    for number in 0..1_000 {
        let asked = request(&format!("lease-{number:04}"), "holder", seconds(60));
        let store = std::sync::Arc::clone(&store);
        taking.spawn(async move {
            let mut tries = 0;
            loop {
                match store.acquire(&asked).await {
                    Ok(Acquired::Granted(grant)) => return renewal(&asked, grant.token),
                    other if tries == 50 => panic!("{other:?}"),
                    _ => tries += 1,
                }
            }
        });
        if taking.len() == 8 {
            renewals.push(taking.join_next().await.unwrap().unwrap());
        }
    }
    renewals.extend(taking.join_all().await);
    renewals[77].token = tenure_core::FencingToken::new(1).unwrap();
    let warm = store.renew(&renewals[..1]).await;
    assert!(matches!(warm[0], Ok(Renewed::Extended { .. })));
    let (before, began) = (proxy.counts().requests, Instant::now());
    let renewed = store.renew(&renewals).await;
    eprintln!("1,000 leases renewed in {:?}", began.elapsed());
    assert_eq!(proxy.counts().requests - before, 1);
    let extended = |answer: &_| matches!(answer, Ok(Renewed::Extended { .. }));
    assert!(
        matches!(renewed[77], Ok(Renewed::Lost(Some(_)))),
        "{:?}",
        renewed[77]
    );
    assert_eq!(renewed.iter().filter(|answer| extended(answer)).count(), 999);
}
