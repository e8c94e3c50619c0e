//! A quorum whose members were all silent for a while, asked by who has little time.

use crate::common::{connection, request, seconds, take};
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
        let mut servers = Vec::new();
        for _ in 0..3 {
            let server = RedisServer::start(RedisOptions::default()).await;
            servers.push(server.expect("a server"));
        }
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
