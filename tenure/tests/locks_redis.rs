//! Locks in Redis: many, and contended.
use crate::harness::{many, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::SharedStore;
use tenure::redis::RedisStore;
use tenure_testkit::{RedisOptions, RedisServer};

async fn connect(url: &str) -> SharedStore {
    Arc::new(soon("connecting", RedisStore::connect(url)).await.unwrap())
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_redis_and_one_that_is_lost_disturbs_none() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let tamper = || async {
        let tampered = server.ask(&format!("HINCRBY {{tenure}}:lease:{} generation 1", many::VICTIM));
        assert!(tampered.unwrap().starts_with(':'));
    };
    let ttl = Duration::from_secs(20);
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(connect(&server.url()).await, ttl, tamper)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_redis() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let url = server.url();
    let stores = [
        connect(&url).await,
        connect(&url).await,
        connect(&url).await,
        connect(&url).await,
    ];
    many::sixty_four_tasks_lose_no_update(stores).await;
}
