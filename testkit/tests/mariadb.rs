//! A MariaDB server can be asked, frozen, killed and restarted.
use mysql_async::prelude::Queryable as _;
use std::time::Duration;
use tenure_testkit::{FaultProxy, Mariadb, RequestFault, is_alive};

#[tokio::test]
async fn mariadb_keeps_what_it_confirmed_through_a_kill() {
    let mut server = Mariadb::start().await.unwrap();
    server
        .execute("CREATE DATABASE kept; CREATE TABLE kept.kept (n INT); INSERT INTO kept.kept VALUES (7)")
        .await
        .unwrap();
    let pid = server.pid().unwrap();
    server.kill();
    assert!(!is_alive(pid));
    server.execute("SELECT 1").await.unwrap_err();
    server.restart().await.unwrap();
    let mut client = Mariadb::client(&server.uri_of("kept")).await.unwrap();
    let kept: Option<i32> = client.query_first("SELECT n FROM kept").await.unwrap();
    assert_eq!(kept, Some(7));
}

#[tokio::test]
async fn frozen_mariadb_answers_nothing_and_goes_on_when_thawed() {
    let server = Mariadb::start().await.unwrap();
    let mut client = Mariadb::client(&server.uri_of("mysql")).await.unwrap();
    server.freeze();
    let asking = client.query_first::<i32, _>("SELECT 7");
    let mut asking = std::pin::pin!(asking);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut asking).await;
    assert!(early.is_err(), "a frozen server answered");
    server.thaw();
    assert_eq!(asking.await.unwrap(), Some(7));
}

/// A reply of many results is one reply, and a request is known by the procedure that it calls.
#[tokio::test]
async fn proxy_knows_mysqls_requests_and_replies() {
    let server = Mariadb::start().await.unwrap();
    server
        .execute(
            "CREATE DATABASE d; CREATE TABLE d.t (n INT); CREATE PROCEDURE d.add_one() BEGIN INSERT INTO d.t VALUES (1); \
             SELECT 'a', NULL, ''; SELECT n FROM d.t; END",
        )
        .await
        .unwrap();
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let uri = format!("mysql://root@{}/d", proxy.address());
    let count = async || {
        let mut client = Mariadb::client(&server.uri_of("d")).await.unwrap();
        client
            .query_first::<i32, _>("SELECT COUNT(*) FROM t")
            .await
            .unwrap()
    };
    let mut client = Mariadb::client(&uri).await.unwrap();
    client.query_drop("CALL add_one()").await.unwrap();
    client.ping().await.unwrap();
    assert_eq!(count().await, Some(1));
    proxy.next_commands(1, "add_one", RequestFault::Duplicate);
    client.query_drop("SELECT 1").await.unwrap();
    client.query_drop("CALL add_one()").await.unwrap();
    assert_eq!((count().await, proxy.counts().duplicated), (Some(3), 1));
    proxy.next_commands(1, "add_one", RequestFault::CutAfter);
    client.query_drop("CALL add_one()").await.unwrap_err();
    assert_eq!((count().await, proxy.counts().cut_after), (Some(4), 1));
    let mut client = Mariadb::client(&uri).await.unwrap();
    proxy.next_commands(1, "add_one", RequestFault::CutBefore);
    client.query_drop("CALL add_one()").await.unwrap_err();
    assert_eq!((count().await, proxy.counts().cut_before), (Some(4), 1));
}
