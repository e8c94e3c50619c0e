//! A quorum whose members were all silent for a while, asked by who has little time.

use crate::common::{connection, in_every_member, request, seconds, servers, take, three_servers};
use std::time::Duration;
use tenure_core::{Acquired, LeaseStore};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer};

/// Less than one member is waited for, and enough for all four round trips where members answer and wait for no disk.
const PATIENCE: Duration = Duration::from_millis(200);

/// How often something is tried that has to succeed at the second try, on a machine that may stall now and then.
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

/// Two members are one holder's, two another's, as after faults that no test can bring about in order, and the fifth, which would
/// decide, is silent: each round waits for it.
#[tokio::test]
async fn acquisition_whose_rounds_are_slow_gives_up_after_a_few_of_them() {
    let servers = servers(7, RedisOptions::default()).await;
    let quorum = async |places: &[usize]| {
        let hosts: Vec<String> = places.iter().map(|place| servers[*place].address()).collect();
        QuorumStore::connect(&format!("redis+quorum://{}", hosts.join(","))).await
    };
    // The last two are of no quorum but a holder's own.
    for (places, holder) in [([0, 1, 5], "a"), ([2, 3, 6], "b")] {
        let store = quorum(&places).await.expect("the quorum connects");
        let grant = take(&store, &request("job", holder, seconds(300))).await;
        in_every_member(&servers[places[0]..=places[1]], grant.token).await;
    }
    let store = quorum(&[0, 1, 2, 3, 4]).await.expect("the quorum connects");
    take(&store, &request("warm", "c", seconds(300))).await;
    servers[4].freeze();
    let asked = async || {
        let mut member = connection(&servers[0].url()).await;
        let look = redis::cmd("INFO").arg("commandstats").to_owned();
        let told: String = look.query_async(&mut member).await.expect("the test can ask");
        let scripts = told
            .lines()
            .filter_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = scripts.filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok());
        calls.sum::<u64>()
    };
    let before = asked().await;
    let error = store
        .acquire(&request("job", "c", seconds(300)))
        .await
        .unwrap_err();
    assert_eq!(error.fault, tenure_core::Fault::Busy, "{error}");
    assert!(error.message.contains("job"), "{error}");
    // In each round it is asked twice at most, and there would be forty.
    let times = asked().await - before;
    assert!((1..=20).contains(&times), "asked {times} times");
}
