//! Watching by the procedure that waits: how it ends, and what it leaves behind.
use crate::common::{PATIENCE, Scratch, family, give_back, next, proxied, replacing, request, seconds, take};
use mysql_async::prelude::Queryable as _;
use std::time::{Duration, Instant};
use tenure_conformance::wire;
use tenure_core::{Change, Fault, FencingToken, Interest, LeaseStore, Scope, Verdict, Watch, WatchEvent};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Mariadb, SqlFamily};

#[tokio::test]
async fn broken_watch_of_mysql_says_so_and_the_next_one_hears() {
    let (proxy, _scratch, store) = proxied().await;
    wire::broken_watch_says_so_and_the_next_one_hears(&store, &proxy, Fault::TimedOut).await;
}

/// A watch on a server that takes no writes any more would wait for what cannot happen there.
#[tokio::test]
async fn watch_of_a_mysql_that_is_demoted_ends() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let mut watch = scratch
        .store()
        .await
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    server.execute("SET GLOBAL read_only = ON").await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, watch.next());
    let error = ended.await.expect("the end is told").unwrap_err();
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
}

/// Until the watch tells of it; others may come before.
async fn until_vacated(watch: &mut Box<dyn Watch>, token: FencingToken) {
    let told = async {
        loop {
            let event = watch.next().await.expect("the watch goes on");
            if matches!(event, WatchEvent::Changed { change: Change::Vacated, token: Some(of), .. } if of == token)
            {
                return;
            }
        }
    };
    let told = tokio::time::timeout(PATIENCE, told).await;
    told.expect("the release is told");
}

/// A lock that another process takes, and hands on within itself, wakes nobody who waits for it.
#[tokio::test]
async fn terms_that_begin_in_mysql_wake_nobody_who_waits_for_an_end_and_a_release_does() {
    const TERMS: usize = 15;
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let mut asked = request("job", "holder", seconds(60));
    let mut token = take(&store, &asked).await.token;
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Ends)
        .await
        .unwrap();
    for _turn in 0..2 {
        give_back(&store, &asked, token).await;
        until_vacated(&mut watch, token).await;
        // The first after a release, and the others without one.
        let (began, mut told) = (Instant::now(), 0);
        for _ in 0..TERMS {
            asked = next(&asked);
            token = take(&store, &asked).await.token;
            let event = tokio::time::timeout(Duration::from_millis(60), watch.next()).await;
            told += u64::from(event.is_ok());
        }
        // What the answer brings that comes every 5 s anyway, since whenever.
        let anyway = began.elapsed().as_secs() / 5 + 1;
        assert!(told <= anyway, "{told} after {:?}", began.elapsed());
    }
}

/// It answers at once whatever it does not know.
#[tokio::test]
async fn procedure_of_an_earlier_set_up_of_mysql_is_not_asked_again_and_again() {
    const CALLS_MAX: u64 = 100;
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    scratch.sql(&replacing(include_str!("earlier/wait.sql"))).await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Ends)
        .await
        .unwrap();
    let early = tokio::time::timeout(Duration::from_secs(2), watch.next()).await;
    assert!(early.is_err(), "{early:?}");
    let mut client = scratch.client().await;
    let calls: Option<(String, u64)> = client
        .query_first("SHOW GLOBAL STATUS LIKE 'Com_call_procedure'")
        .await
        .unwrap();
    let (_, calls) = calls.unwrap();
    assert!(calls < CALLS_MAX, "{calls} calls in two seconds");
    give_back(&store, &asked, token).await;
    until_vacated(&mut watch, token).await;
}

/// A limit on statements that is shorter than one wait ends no watch, as each statement within counts for
/// itself; what it does cut is told.
#[tokio::test]
async fn limit_on_statements_of_mariadb_ends_no_watch_and_is_told_of() {
    if family() != SqlFamily::Mariadb {
        // Its limit is on reading statements alone, and not on those of procedures.
        return;
    }
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let database = &scratch.database;
    scratch
        .sql(&format!(
            "CREATE USER hurried IDENTIFIED BY 'x' WITH MAX_STATEMENT_TIME 3; \
             GRANT SELECT, INSERT, UPDATE, EXECUTE ON {database}.* TO hurried"
        ))
        .await;
    let store = MysqlStore::connect(&server.uri_as("hurried", "x", database)).await;
    let store = store.unwrap();
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .unwrap();
    let early = tokio::time::timeout(Duration::from_secs(4), watch.next()).await;
    assert!(early.is_err(), "{early:?}");
    give_back(&store, &asked, token).await;
    let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
    assert!(
        matches!(
            told,
            Ok(WatchEvent::Changed {
                change: Change::Vacated,
                ..
            })
        ),
        "{told:?}"
    );
    let findings = store.examine().await.unwrap();
    let limit = findings
        .iter()
        .find(|finding| finding.subject == "statement timeout");
    let limit = limit.expect("the limit is told of");
    assert_eq!(limit.verdict, Verdict::Warning, "{limit:?}");
    assert!(limit.detail.contains("3000 ms"), "{limit:?}");
    let findings = scratch.store().await.examine().await.unwrap();
    assert!(
        findings
            .iter()
            .all(|finding| finding.subject != "statement timeout")
    );
}

/// Watches are bounded, those that nobody reads any more do not count, and the server is soon done with them,
/// too.
#[tokio::test]
async fn watches_of_mysql_are_bounded_and_leave_nothing_behind() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let scope = Scope::Prefix(String::new());
    let mut watches = Vec::new();
    let refused = loop {
        assert!(watches.len() < 100, "no bound");
        match store.watch(&scope, Interest::Everything).await {
            Ok(watch) => watches.push(watch),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.fault, Fault::Busy, "{refused}");
    assert!(refused.message.contains(&watches.len().to_string()), "{refused}");
    let mut client = scratch.client().await;
    let mut waiting = async || {
        // Neither the test's own connections nor those between two questions.
        let asked = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'";
        client.query_first::<usize, _>(asked).await.unwrap().unwrap()
    };
    let begun = async {
        while waiting().await == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, begun)
        .await
        .expect("somebody waits");
    drop(watches);
    let freed = async {
        while store.watch(&scope, Interest::Everything).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        while waiting().await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed)
        .await
        .expect("the server's procedures end");
}

/// Who is answered asks again at once: where each look finds a change, the pause is before the answer, or
/// there would be none.
#[tokio::test]
async fn watch_of_many_leases_of_mysql_that_change_all_the_time_rests_between_its_looks() {
    let scratch = Scratch::new().await;
    let numbers = "WITH RECURSIVE n AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM n WHERE k < 150)";
    let many = format!(
        "INSERT INTO tenure_leases (name, owner, incarnation, token, attempt, terms, ttl_ms, created_us, acquired_us, expires_us, \
         note) {numbers} SELECT CONCAT('n-', a.k, '-', b.k), 'one', REPEAT('a', 32), 1, 1, 1, 1000, 1, 1, 1, '' FROM n a, n b"
    );
    scratch.sql(&many).await;
    let store = scratch.store().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();
    let (mut changer, mut looker) = (scratch.client().await, scratch.client().await);
    let own = (changer.id(), looker.id());
    let changing = async {
        loop {
            let change = "UPDATE tenure_leases SET token = token + 1 WHERE name = 'n-1-1'";
            changer.query_drop(change).await.unwrap();
        }
    };
    let reading = async { while watch.next().await.is_ok() {} };
    let looked_at = async {
        let at_rest = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep' AND db = '{}' AND id NOT IN ({}, {})",
            scratch.database, own.0, own.1
        );
        let mut resting = 0_u32;
        for _ in 0..LOOKS {
            resting += looker.query_first::<u32, _>(&at_rest).await.unwrap().unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        resting
    };
    let resting = tokio::select! {
        resting = looked_at => resting,
        () = changing => unreachable!("it goes on"),
        () = reading => panic!("the watch has ended"),
    };
    // Ten parts of eleven by the server's own time, of which a slow machine leaves fewer to whoever reads;
    // without that pause, one of thirty.
    assert!(resting > LOOKS / 10, "it rested at {resting} of {LOOKS} looks");
}

/// How often the test looks at what the watch does.
const LOOKS: u32 = 200;
