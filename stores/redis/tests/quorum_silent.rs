//! A quorum whose members were all silent for a while, asked by who has little time.

use crate::common::{
    connection, given_back_in_each, giving_back, in_each, in_every_member, request, seconds, servers, take,
    three_servers,
};
use std::time::Duration;
use tenure_core::{Acquired, LeaseStore, Released, StoreError};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer};
use tokio::time::timeout;

/// Less than one member is waited for, and enough for all four round trips where members answer and wait for
/// no disk.
const PATIENCE: Duration = Duration::from_millis(200);

/// Less than a member is waited for that has answered so far.
const LITTLE: Duration = Duration::from_millis(1_300);

/// How often something is tried that has to succeed at the second try, on a machine that may stall now and
/// then.
const TRIES_MAX: usize = 50;

/// Who only campaigns asks one member first: each that did not answer it is passed over the next time.
#[tokio::test]
async fn majority_that_was_silent_is_asked_again_though_one_member_stays_silent() {
    for stays in 0..3 {
        let servers = three_servers().await;
        let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
        let store = QuorumStore::connect(&format!("redis+quorum://{}", hosts.join(",")))
            .await
            .expect("the quorum connects");
        take(&store, &request("warm", "a", seconds(300))).await;
        let asked = request("job", "a", seconds(300));
        servers.iter().for_each(RedisServer::freeze);
        for _ in 0..2 * servers.len() {
            let trying = tokio::time::timeout(PATIENCE, store.acquire(&asked)).await;
            assert!(
                !matches!(trying, Ok(Ok(_))),
                "frozen servers have answered: {trying:?}"
            );
        }
        for (place, server) in servers.iter().enumerate() {
            if place != stays {
                server.thaw();
                // A connection of the test's own is answered: it is awake.
                let _awake = connection(&server.url()).await;
            }
        }
        let mut answer = None;
        for _ in 0..TRIES_MAX {
            let trying = tokio::time::timeout(PATIENCE, store.acquire(&asked));
            answer = trying.await.ok();
            if matches!(answer, Some(Ok(Acquired::Granted(_)))) {
                break;
            }
        }
        let granted = matches!(answer, Some(Ok(Acquired::Granted(_))));
        assert!(granted, "member {stays} stays frozen: {answer:?}");
    }
}

/// Two members are one holder's, two another's, as after faults that no test can bring about in order, and
/// the fifth, which would decide, is silent. Whoever has less time than one member is waited for at first
/// hears all the same what the others know.
#[tokio::test]
async fn who_has_little_time_is_told_that_members_do_not_agree_though_one_that_decides_is_silent() {
    let servers = servers(7, RedisOptions::default()).await;
    let quorum = async |places: &[usize]| {
        let hosts: Vec<String> = places.iter().map(|place| servers[*place].address()).collect();
        QuorumStore::connect(&format!("redis+quorum://{}", hosts.join(","))).await
    };
    // Members of another quorum would be refused, and none is recorded while one has a lease.
    let rename = async |from: &str, to: &str| {
        for server in &servers[..5] {
            let mut member = connection(&server.url()).await;
            let rename = redis::cmd("RENAME").arg(from).arg(to).to_owned();
            let _done: String = rename.query_async(&mut member).await.expect("the test can ask");
        }
    };
    let store = quorum(&[0, 1, 2, 3, 4]).await.expect("the quorum connects");
    let warm = request("warm", "c", seconds(300));
    let token = take(&store, &warm).await.token;
    let urls = || servers[..5].iter().map(RedisServer::url);
    in_each(urls(), "warm", token).await;
    let released = store.release(&[giving_back(&warm, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    given_back_in_each(urls(), "warm").await;
    rename("{tenure}:quorum", "aside").await;
    // The last two are of no quorum but a holder's own.
    for (places, holder) in [([0, 1, 5], "a"), ([2, 3, 6], "b")] {
        let theirs = quorum(&places).await.expect("the quorum connects");
        let grant = take(&theirs, &request("job", holder, seconds(300))).await;
        in_every_member(&servers[places[0]..=places[1]], grant.token).await;
    }
    rename("aside", "{tenure}:quorum").await;
    servers[4].freeze();
    let asked = request("job", "c", seconds(300));
    // However much time it has, it is not told anything else; nor where the first member is free.
    let not_agreed = |error: &StoreError| {
        error.fault == tenure_core::Fault::Unreachable && error.message.contains("do not agree who holds it")
    };
    let error = store.acquire(&asked).await.unwrap_err();
    assert!(not_agreed(&error), "{error}");
    servers[4].thaw();
    let free_first = quorum(&[4, 0, 2, 1, 3]).await.expect("the quorum connects");
    take(&free_first, &request("warmer", "c", seconds(300))).await;
    [1, 3].iter().for_each(|place: &usize| servers[*place].freeze());
    let error = free_first.acquire(&asked).await.unwrap_err();
    assert!(not_agreed(&error), "{error}");
    [1, 3].iter().for_each(|place: &usize| servers[*place].thaw());
    servers[4].freeze();
    for _ in 0..TRIES_MAX {
        let (looked, tried) = (
            timeout(LITTLE, store.get(&asked.name)).await,
            timeout(LITTLE, store.acquire(&asked)).await,
        );
        if let (Ok(Err(looked)), Ok(Err(tried))) = (looked, tried) {
            assert!(not_agreed(&looked) && not_agreed(&tried), "{looked}, {tried}");
            return;
        }
    }
    panic!("nothing was told in time");
}
