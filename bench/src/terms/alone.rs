//! Deployments of one server, each process behind a proxy of its own.

use std::sync::Arc;
use tenure::LeaseStore;
use tenure::mysql::MysqlStore;
use tenure::nats::NatsStore;
use tenure::postgres::PostgresStore;
use tenure::redis::RedisStore;
use tenure_conformance::terms::{Process, Seen, run_alone};
use tenure_testkit::{
    FaultProxy, Mariadb, NatsOptions, NatsServer, PgBouncer, Postgres, RedisOptions, RedisServer,
};

/// What PostgreSQL's proxy knows of the store's statements.
const FUNCTIONS: &[&str] = &["take", "renew", "give_back"];

/// A process whose only way is this one.
fn process(store: impl LeaseStore + 'static, way: FaultProxy) -> Process {
    Process {
        store: Arc::new(store),
        ways: vec![Arc::new(way)],
    }
}

pub async fn postgres(terms: u64) -> Seen {
    let mut server = prepared_postgres().await;
    let address = server.address();
    run_alone(terms, FUNCTIONS, &mut server, async || {
        through(address.clone()).await
    })
    .await
}

pub async fn pgbouncer(terms: u64) -> Seen {
    let mut server = prepared_postgres().await;
    let pooler = PgBouncer::start(&server, POOLED).await.expect("PgBouncer");
    run_alone(terms, FUNCTIONS, &mut server, async || {
        through(pooler.address()).await
    })
    .await
}

/// Fewer than the stores would have.
const POOLED: u32 = 8;

async fn prepared_postgres() -> Postgres {
    let server = Postgres::start().await.expect("a PostgreSQL server");
    PostgresStore::init(&server.uri()).await.expect("its schema");
    server
}

async fn through(address: String) -> Process {
    let way = FaultProxy::postgres(address).expect("a proxy");
    let url = format!(
        "postgres://postgres@{}/postgres?sslmode=disable&listen=off",
        way.address()
    );
    process(PostgresStore::connect(&url).await.expect("it connects"), way)
}

pub async fn mariadb(terms: u64) -> Seen {
    let mut server = Mariadb::start().await.expect("a MariaDB server");
    server.execute("CREATE DATABASE jobs").await.expect("a database");
    MysqlStore::init(&server.uri_of("jobs"))
        .await
        .expect("its tables");
    let address = server.address();
    let procedures = &["tenure_acquire_1", "tenure_renew_1", "tenure_release_1"];
    run_alone(terms, procedures, &mut server, async || {
        let way = FaultProxy::mysql(address.clone()).expect("a proxy");
        let url = format!("mysql://root@{}/jobs", way.address());
        process(MysqlStore::connect(&url).await.expect("it connects"), way)
    })
    .await
}

pub async fn redis(terms: u64) -> Seen {
    let mut server = RedisServer::start(RedisOptions::durable())
        .await
        .expect("a Redis server");
    let address = server.address();
    run_alone(terms, &["EVALSHA"], &mut server, async || {
        let way = FaultProxy::redis(address.clone()).expect("a proxy");
        let url = format!("redis://{}", way.address());
        process(RedisStore::connect(&url).await.expect("it connects"), way)
    })
    .await
}

pub async fn nats(terms: u64) -> Seen {
    let mut server = NatsServer::start(NatsOptions::durable())
        .await
        .expect("a NATS server");
    let (address, monitor) = (server.address(), server.monitor_address());
    run_alone(terms, super::together::NATS_REQUESTS, &mut server, async || {
        let way = FaultProxy::nats(address.clone()).expect("a proxy");
        let url = format!("nats://{}?monitor={monitor}", way.address());
        process(NatsStore::connect(&url).await.expect("it connects"), way)
    })
    .await
}
