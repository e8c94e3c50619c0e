//! Watching by the procedure that waits: how it ends, and what it leaves behind.
use crate::common::{PATIENCE, Scratch, proxied};
use mysql_async::prelude::Queryable as _;
use std::time::Duration;
use tenure_conformance::wire;
use tenure_core::{Fault, LeaseStore, Scope};
use tenure_testkit::Mariadb;

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
        .watch(&Scope::Prefix(String::new()))
        .await
        .unwrap();
    server.execute("SET GLOBAL read_only = ON").await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, watch.next());
    let error = ended.await.expect("the end is told").unwrap_err();
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
}

/// Watches are bounded, those that nobody reads any more do not count, and the server is soon done with them, too.
#[tokio::test]
async fn watches_of_mysql_are_bounded_and_leave_nothing_behind() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let store = scratch.store().await;
    let scope = Scope::Prefix(String::new());
    let mut watches = Vec::new();
    let refused = loop {
        assert!(watches.len() < 100, "no bound");
        match store.watch(&scope).await {
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
    assert!(waiting().await > 0, "nobody waits");
    drop(watches);
    let freed = async {
        while store.watch(&scope).await.is_err() {
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
