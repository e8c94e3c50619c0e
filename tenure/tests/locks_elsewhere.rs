//! Locks in PostgreSQL, MariaDB, etcd, NATS and a quorum of Redis servers: many, and contended.
use crate::harness::{many, soon, turns};
use std::time::Duration;
use tenure::contract::Release;
use tenure::{LeaseName, Registry, SharedStore};
use tenure_testkit::{
    Etcd, EtcdOptions, Mariadb, NatsOptions, NatsServer, Postgres, RedisOptions, RedisServer,
};

/// Long enough for a thousand locks on a loaded machine, as each is taken by a request of its own.
const TTL: Duration = Duration::from_secs(30);

async fn connect(url: &str) -> SharedStore {
    soon("connecting", Registry::connect(url)).await.unwrap()
}

/// Has an operator give one of the locks back, whatever its holder knows.
async fn a_beat_extends_all(url: &str) {
    let operator = connect(url).await;
    let tamper = || async {
        let victim = LeaseName::new(many::VICTIM).unwrap();
        let lease = operator.get(&victim).await.unwrap().unwrap();
        let release = Release {
            name: victim,
            incarnation: lease.holder.incarnation,
            token: lease.token,
            attempt: lease.attempt,
        };
        operator.release(&[release]).await.remove(0).unwrap();
    };
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(connect(url).await, TTL, tamper).await;
}

async fn sixty_four_tasks_lose_no_update(url: &str) {
    let stores = [
        connect(url).await,
        connect(url).await,
        connect(url).await,
        connect(url).await,
    ];
    many::sixty_four_tasks_lose_no_update(stores).await;
}

/// A schema of its own, set up.
async fn in_postgres(schema: &str) -> String {
    let url = format!("{}?schema={schema}", Postgres::shared().await.uri());
    tenure::postgres::PostgresStore::init(&url).await.unwrap();
    url
}

/// A database of its own, set up.
async fn in_mariadb(database: &str) -> String {
    let server = Mariadb::shared().await;
    server
        .execute(&format!("CREATE DATABASE {database}"))
        .await
        .unwrap();
    let url = format!("mysql://root@{}/{database}", server.address());
    tenure::mysql::MysqlStore::init(&url).await.unwrap();
    url
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_postgres_and_one_that_is_lost_disturbs_none() {
    a_beat_extends_all(&in_postgres("locks_beat").await).await;
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_mysql_and_one_that_is_lost_disturbs_none() {
    a_beat_extends_all(&in_mariadb("locks_beat").await).await;
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_etcd_and_one_that_is_lost_disturbs_none() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    a_beat_extends_all(&etcd.url()).await;
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_nats_and_one_that_is_lost_disturbs_none() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    a_beat_extends_all(&format!("{}/locks", server.url())).await;
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_a_quorum_and_one_that_is_lost_disturbs_none() {
    let servers = three_redis_servers().await;
    a_beat_extends_all(&quorum_url(&servers)).await;
}

#[tokio::test]
async fn a_row_of_postgres_that_is_kept_locked_costs_its_own_lock_alone() {
    let url = in_postgres("locks_kept").await;
    let keep_locked = |name| async move {
        let keeping = format!(
            "BEGIN; SELECT 1 FROM locks_kept.leases WHERE name = '{name}' FOR UPDATE; SELECT pg_sleep(10); ROLLBACK"
        );
        Postgres::shared().await.execute(&keeping).await.unwrap();
    };
    many::a_row_that_is_kept_locked_costs_its_own_lock_alone(connect(&url).await, keep_locked).await;
}

#[tokio::test]
async fn a_row_of_mysql_that_is_kept_locked_costs_its_own_lock_alone() {
    let url = in_mariadb("locks_kept").await;
    let keep_locked = |name| async move {
        let keeping = format!(
            "BEGIN; SELECT 1 FROM locks_kept.tenure_leases WHERE name = '{name}' FOR UPDATE; DO SLEEP(10); ROLLBACK"
        );
        Mariadb::shared().await.execute(&keeping).await.unwrap();
    };
    many::a_row_that_is_kept_locked_costs_its_own_lock_alone(connect(&url).await, keep_locked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_postgres() {
    sixty_four_tasks_lose_no_update(&in_postgres("locks_tasks").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_mysql() {
    sixty_four_tasks_lose_no_update(&in_mariadb("locks_tasks").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_etcd() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    sixty_four_tasks_lose_no_update(&etcd.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_nats() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    sixty_four_tasks_lose_no_update(&format!("{}/locks", server.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_a_quorum() {
    let servers = three_redis_servers().await;
    sixty_four_tasks_lose_no_update(&quorum_url(&servers)).await;
}

/// Arrivals are ordered by tokens, which each store makes in its own way.
async fn nobody_is_overtaken_twice(url: &str) {
    turns::nobody_is_overtaken_twice(4, async || connect(url).await).await;
}

#[tokio::test]
async fn no_process_is_overtaken_twice_by_another_in_postgres() {
    nobody_is_overtaken_twice(&in_postgres("locks_turns").await).await;
}

#[tokio::test]
async fn no_process_is_overtaken_twice_by_another_in_etcd() {
    let etcd = Etcd::start(EtcdOptions::default()).await.unwrap();
    nobody_is_overtaken_twice(&etcd.url()).await;
}

#[tokio::test]
async fn no_process_is_overtaken_twice_by_another_in_nats() {
    let server = NatsServer::start(NatsOptions::default()).await.unwrap();
    nobody_is_overtaken_twice(&format!("{}/locks", server.url())).await;
}

#[tokio::test]
async fn no_process_is_overtaken_twice_by_another_in_a_quorum() {
    let servers = three_redis_servers().await;
    nobody_is_overtaken_twice(&quorum_url(&servers)).await;
}

async fn three_redis_servers() -> Vec<RedisServer> {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(RedisServer::start(RedisOptions::durable()).await.unwrap());
    }
    servers
}

fn quorum_url(servers: &[RedisServer]) -> String {
    let addresses: Vec<String> = servers.iter().map(RedisServer::address).collect();
    format!("redis+quorum://{}", addresses.join(","))
}
