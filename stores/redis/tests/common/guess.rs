//! A lease that was held and given back by a process whose next request guesses its token.

use super::{
    BOUND, Record, connection, given_back_in_each, giving_back, hosts, quorum_at, record_in, renewal,
    request, seconds, servers, take, told_held,
};
use std::time::Duration;
use tenure_core::{Acquire, FencingToken, Grant, LeaseStore, Released, Renewed};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer, eventually_async};

/// Above every clock's time.
pub const LATER: u64 = 4_000_000_000_000;

pub const KEY: &str = "{tenure}:lease:job";

/// Three that keep what they confirm: where they may forget it, nothing is guessed.
pub async fn three() -> Vec<RedisServer> {
    servers(3, RedisOptions::durable()).await
}

/// Requests of two processes for the lease "job".
pub fn a_and_b() -> (Acquire, Acquire) {
    (
        request("job", "a", seconds(300)),
        request("job", "b", seconds(300)),
    )
}

pub async fn asked_of(server: &RedisServer, command: &redis::Cmd) -> redis::Value {
    let mut member = connection(&server.url()).await;
    command.query_async(&mut member).await.expect("the test can ask")
}

/// Whether a member has confirmed a term of this very attempt.
pub async fn is_confirmed(server: &RedisServer, asked: &Acquire) -> bool {
    let record = record_in(server, "job").await;
    record.get("incarnation") == Some(&asked.candidate.incarnation.to_string())
        && record.get("attempt") == Some(&asked.attempt.to_string())
        && !record.contains_key("unconfirmed")
}

pub async fn give_back(store: &QuorumStore, servers: &[RedisServer], asked: &Acquire, token: FencingToken) {
    let released = store.release(&[giving_back(asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    given_back_in_each(servers.iter().map(RedisServer::url), "job").await;
}

/// The lease "job" was held, and given back everywhere: what is asked next guesses its token.
pub async fn had(store: &QuorumStore, servers: &[RedisServer], asked: &mut Acquire) -> Grant {
    let grant = take(store, asked).await;
    for server in servers {
        let has_it = async || {
            let is_there = is_confirmed(server, asked).await
                && number(server, "generation").await == grant.token.number();
            if !is_there {
                // One that was late for its token is brought the term by a renewal, and by nothing else.
                let _extended = store.renew(&[renewal(asked, grant.token)]).await;
            }
            is_there
        };
        eventually_async(BOUND, "the term in every member", has_it).await;
    }
    give_back(store, servers, asked, grant.token).await;
    asked.attempt = asked.attempt.next();
    grant
}

/// Every token that follows is ahead of the clocks.
pub async fn are_ahead(servers: &[RedisServer]) {
    are_at(servers, LATER).await;
}

pub async fn are_at(servers: &[RedisServer], token: u64) {
    let set = [("generation", token.to_string())];
    for server in servers {
        asked_of(server, redis::cmd("HSET").arg(KEY).arg(&set)).await;
    }
}

/// The same as [`had`], by tokens that no clock reaches: what follows is behind no member's clock, however
/// slow the machine is. Once for a set of servers, as it would set tokens back.
pub async fn had_ahead(store: &QuorumStore, servers: &[RedisServer], asked: &mut Acquire) -> Grant {
    had(&quorum_at(&hosts(servers)).await, servers, asked).await;
    are_ahead(servers).await;
    // Found, and not guessed: this store knows nothing of the term before.
    had(store, servers, asked).await
}

/// Gives a member this record.
pub async fn set(server: &RedisServer, record: &Record) {
    asked_of(server, redis::cmd("DEL").arg(KEY)).await;
    let fields: Vec<(&String, &String)> = record.iter().collect();
    asked_of(server, redis::cmd("HSET").arg(KEY).arg(&fields)).await;
}

pub async fn is_extended(store: &QuorumStore, asked: &Acquire, token: FencingToken) {
    let renewed = store.renew(&[renewal(asked, token)]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Extended { .. })), "{renewed:?}");
}

/// Renews until a member holds the term, which is brought to it behind the answers.
pub async fn is_brought(store: &QuorumStore, server: &RedisServer, asked: &Acquire, token: FencingToken) {
    eventually_async(BOUND, "the term in the member that missed it", async || {
        is_extended(store, asked, token).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        is_confirmed(server, asked).await && number(server, "generation").await == token.number()
    })
    .await;
}

pub async fn number(server: &RedisServer, field: &str) -> u64 {
    record_in(server, "job").await[field].parse().expect("a number")
}

pub fn next(token: FencingToken) -> FencingToken {
    FencingToken::successor(Some(token), 0).expect("a token")
}

pub async fn is_held(store: &QuorumStore, asked: &Acquire, token: FencingToken) {
    is_extended(store, asked, token).await;
    let rival = request("job", "rival", seconds(300));
    assert_eq!(told_held(store, &rival).await.token, token);
}
