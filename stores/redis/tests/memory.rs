//! A server whose memory is full.

use crate::common::{Scratch, giving_back, renewal, request, seconds, take};
use redis::aio::MultiplexedConnection;
use tenure_core::{Durability, Fault, LeaseStore, Renewed};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer};

/// More than the server needs at first.
const MEMORY: &str = "--maxmemory 16mb";

/// Values of this many bytes fill it.
const FILLER_BYTES: usize = 64 * 1024;

/// More of them than fit.
const FILLERS_MAX: usize = 10_000;

#[tokio::test]
async fn server_without_memory_grants_and_renews_nothing_says_so_and_answers_who_looks() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let settings = format!("{MEMORY} --maxmemory-policy noeviction");
        let server = RedisServer::start(RedisOptions::with(&settings).of(build))
            .await
            .expect("a server");
        let scratch = Scratch::on(&server.url());
        let store = scratch.store().await;
        let held = request("job", "a", seconds(300));
        let token = take(&store, &held).await.token;
        // Below what it uses by itself, so that not even the smallest request finds room.
        let set = |bytes: u32| server.ask(&format!("CONFIG SET maxmemory {bytes}"));
        assert_eq!(set(1).expect("asked"), "+OK");
        let before = scratch.raw("job").await;
        let refusals = [
            store
                .acquire(&request("other", "b", seconds(300)))
                .await
                .expect_err("granted"),
            store
                .renew(&[renewal(&held, token)])
                .await
                .remove(0)
                .expect_err("renewed"),
            store
                .release(&[giving_back(&held, token)])
                .await
                .remove(0)
                .expect_err("released"),
        ];
        for error in refusals {
            assert_eq!(error.fault, Fault::Full, "{build:?}: {error}");
        }
        assert!(store.get(&held.name).await.expect("a read").is_some());
        assert_eq!(scratch.raw("job").await, before, "{build:?}");
        assert_eq!(set(0).expect("asked"), "+OK");
        let renewed = store.renew(&[renewal(&held, token)]).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{build:?}: {renewed:?}"
        );
    }
}

/// It says so beforehand; the clock is the next token's floor, as where a server forgets.
#[tokio::test]
async fn held_record_that_is_evicted_ends_its_term_and_the_next_token_is_higher() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let settings =
            format!("{MEMORY} --maxmemory-policy allkeys-lru --appendonly yes --appendfsync always");
        let server = RedisServer::start(RedisOptions::with(&settings).of(build))
            .await
            .expect("a server");
        let scratch = Scratch::on(&server.url());
        let store = scratch.store().await;
        let durability = store.traits().durability;
        assert!(
            matches!(durability, Durability::FenceOnly(why) if why.contains("evicts")),
            "{durability:?}"
        );
        let held = request("job", "a", seconds(300));
        let before = take(&store, &held).await;
        let mut admin = scratch.connection().await;
        let mut number = 0;
        while is_there(&mut admin, &scratch.key("job")).await {
            let mut filling = redis::cmd("SET");
            filling
                .arg(format!("filler-{number}"))
                .arg(vec![0_u8; FILLER_BYTES]);
            filling.query_async::<()>(&mut admin).await.expect("room is made");
            number += 1;
            assert!(number < FILLERS_MAX, "it is never evicted");
        }
        let renewed = store.renew(&[renewal(&held, before.token)]).await.remove(0);
        assert_eq!(renewed, Ok(Renewed::Lost(None)), "{build:?}");
        let after = take(&store, &request("job", "b", seconds(300))).await;
        assert!(after.token > before.token, "{build:?}: the token fell");
        let renewed = store.renew(&[renewal(&held, before.token)]).await.remove(0);
        assert!(
            matches!(&renewed, Ok(Renewed::Lost(Some(now))) if now.token == after.token),
            "{build:?}: {renewed:?}"
        );
    }
}

/// Looked for without touching it: what was used last is kept.
async fn is_there(connection: &mut MultiplexedConnection, key: &str) -> bool {
    let mut looking = redis::cmd("OBJECT");
    looking.arg("IDLETIME").arg(key);
    let idle: Option<i64> = looking.query_async(connection).await.unwrap_or_default();
    idle.is_some()
}
