//! Redis and Valkey servers: they start, answer, freeze, keep what they keep, and fail over.

use std::time::Duration;

use tenure_testkit::{RedisBuild, RedisOptions, RedisSentinels, RedisServer, eventually, is_alive};

/// As a loaded machine may need it.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn both_builds_start_and_answer() {
    for (build, word) in [(RedisBuild::Redis, "redis"), (RedisBuild::Valkey, "valkey")] {
        let server = RedisServer::start(RedisOptions::default().of(build))
            .await
            .unwrap();
        assert_eq!(server.ask("SET key value").unwrap(), "+OK", "{word}");
        let pid = server.pid().unwrap();
        drop(server);
        eventually(LONG, "the server's end", || !is_alive(pid));
    }
}

#[tokio::test]
async fn durable_server_keeps_what_it_confirmed_through_a_kill() {
    let mut server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    assert_eq!(server.ask("SET key value").unwrap(), "+OK");
    server.restart().await.unwrap();
    assert_eq!(server.ask("STRLEN key").unwrap(), ":5");
}

#[tokio::test]
async fn server_without_a_disk_forgets_when_it_is_killed() {
    let mut server = RedisServer::start(RedisOptions::default()).await.unwrap();
    assert_eq!(server.ask("SET key value").unwrap(), "+OK");
    server.restart().await.unwrap();
    assert_eq!(server.ask("STRLEN key").unwrap(), ":0");
}

#[tokio::test]
async fn frozen_server_does_not_answer_until_it_is_thawed() {
    let server = RedisServer::start(RedisOptions::default()).await.unwrap();
    server.freeze();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| server.ask("PING"));
        std::thread::sleep(Duration::from_secs(1));
        assert!(!asking.is_finished(), "a frozen server answered");
        server.thaw();
    });
    eventually(LONG, "an answer", || {
        server.ask("PING").is_ok_and(|answer| answer == "+PONG")
    });
}

/// Tries of a start: a primary that is held up for a second loses its rank before anybody has killed it.
const TRIES_MAX: usize = 4;

async fn sentinels_of_an_unharmed_primary() -> RedisSentinels {
    for _ in 0..TRIES_MAX {
        let mut set = RedisSentinels::start().await.unwrap();
        let [_, replica] = set.servers();
        if replica.ask("SET key value").unwrap().starts_with("-READONLY") {
            return set;
        }
    }
    panic!("the replica took a write each time");
}

#[tokio::test]
async fn sentinels_make_the_replica_primary_when_the_primary_is_killed() {
    let mut set = sentinels_of_an_unharmed_primary().await;
    set.servers()[0].kill();
    let replica = &set.servers()[1];
    eventually(LONG, "a write on the old replica", || {
        replica.ask("SET key value").is_ok_and(|answer| answer == "+OK")
    });
}
