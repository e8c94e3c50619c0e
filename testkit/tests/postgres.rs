//! A PostgreSQL server can be asked, frozen, killed and restarted, and a pooler stands in front of it.
use std::time::Duration;
use tenure_testkit::{PgBouncer, Postgres, is_alive};

#[tokio::test]
async fn postgres_keeps_what_it_confirmed_through_a_kill() {
    let mut server = Postgres::start().await.unwrap();
    server
        .execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
        .await
        .unwrap();
    let pid = server.pid().unwrap();
    server.kill();
    assert!(!is_alive(pid));
    server.execute("SELECT 1").await.unwrap_err();
    server.restart().await.unwrap();
    let client = Postgres::client(&server.uri()).await.unwrap();
    let row = client.query_one("SELECT n FROM kept", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 7);
}

#[tokio::test]
async fn frozen_postgres_answers_nothing_and_goes_on_when_thawed() {
    let server = Postgres::start().await.unwrap();
    let client = Postgres::client(&server.uri()).await.unwrap();
    server.freeze();
    let asking = client.query_one("SELECT 7", &[]);
    let mut asking = std::pin::pin!(asking);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut asking).await;
    assert!(early.is_err(), "a frozen server answered");
    server.thaw();
    assert_eq!(asking.await.unwrap().get::<_, i32>(0), 7);
}

#[tokio::test]
async fn postgres_with_passwords_refuses_a_wrong_one() {
    let server = Postgres::with_passwords().await.unwrap();
    server.execute("SELECT 1").await.unwrap();
    let wrong = server.uri_as("postgres", Some("wrong"), "postgres");
    Postgres::execute_at(&wrong, "SELECT 1").await.unwrap_err();
}

/// Two transactions of one client may meet two servers: what a session keeps is not there the next time.
#[tokio::test]
async fn pooler_gives_each_transaction_a_server_connection() {
    let server = Postgres::start().await.unwrap();
    let pooler = PgBouncer::start(&server, 2).await.unwrap();
    let one = Postgres::client(&pooler.uri_of("postgres")).await.unwrap();
    let two = Postgres::client(&pooler.uri_of("postgres")).await.unwrap();
    one.batch_execute("BEGIN").await.unwrap();
    let pid = |rows: Vec<tokio_postgres::SimpleQueryMessage>| {
        let row = rows.into_iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        row.unwrap()
    };
    let ask = "SELECT pg_backend_pid()";
    let first = pid(one.simple_query(ask).await.unwrap());
    let other = pid(two.simple_query(ask).await.unwrap());
    assert_ne!(first, other, "a connection in a transaction is nobody else's");
    one.batch_execute("COMMIT").await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(pid(one.simple_query(ask).await.unwrap()));
        two.batch_execute("BEGIN").await.unwrap();
        seen.push(pid(one.simple_query(ask).await.unwrap()));
        two.batch_execute("COMMIT").await.unwrap();
    }
    assert!(
        seen.contains(&first) && seen.contains(&other),
        "{first}, {other}: {seen:?}"
    );
}
