//! Servers that were demoted after the store had connected: they tell nothing of what they no longer rule.

use crate::common::{Scratch, connection, request, seconds, take};
use tenure_core::{Fence, LeaseStore, Page, ResourceName, StoreError, Term};
use tenure_redis::{QuorumStore, RedisFence};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer};

async fn server(build: RedisBuild) -> RedisServer {
    let started = RedisServer::start(RedisOptions::default().of(build)).await;
    started.expect("a server")
}

async fn demote(old: &RedisServer, new: &RedisServer) {
    let mut connection = connection(&old.url()).await;
    let demoted: String = redis::cmd("REPLICAOF")
        .arg("127.0.0.1")
        .arg(new.port())
        .query_async(&mut connection)
        .await
        .expect("asked");
    assert_eq!(demoted, "OK");
}

fn page() -> Page {
    Page {
        prefix: String::new(),
        after: None,
        limit: 10,
    }
}

#[track_caller]
fn says_that_it_is_demoted(error: &StoreError) {
    assert!(
        error.message.contains("replica") || error.message.contains("MASTERDOWN"),
        "{error}"
    );
    assert!(
        !error.fault.is_misconfiguration(),
        "it would end a campaign: {error}"
    );
}

#[tokio::test]
async fn server_that_is_demoted_lists_neither_leases_nor_marks() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let (old, new) = (server(build).await, server(build).await);
        let scratch = Scratch::on(&old.url());
        let store = scratch.store().await;
        let fence = RedisFence::connect(&scratch.store_url()).await.expect("a fence");
        let asked = request("job", "a", seconds(60));
        let term = Term::new(asked.name.clone(), take(&store, &asked).await.token);
        let ledger = ResourceName::new("ledger").expect("a name");
        fence.claim(&ledger, &term).await.expect("a claim");
        assert_eq!(store.list(&page()).await.expect("a page").leases.len(), 1);
        assert_eq!(fence.marks(None).await.expect("a page").len(), 1);
        demote(&old, &new).await;
        for _ in 0..2 {
            let listed = store.list(&page()).await;
            says_that_it_is_demoted(&listed.expect_err("a replica listed what it knows"));
            match fence.marks(None).await {
                Err(tenure_core::FenceError::Store(error)) => says_that_it_is_demoted(&error),
                told => panic!("a replica told its marks: {told:?}"),
            }
        }
    }
}

#[tokio::test]
async fn quorum_whose_majority_is_demoted_lists_no_leases() {
    let build = RedisBuild::Redis;
    let members = [server(build).await, server(build).await, server(build).await];
    let new = server(build).await;
    let hosts: Vec<String> = members.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::connect(&url).await.expect("the quorum connects");
    take(&store, &request("job", "a", seconds(60))).await;
    demote(&members[0], &new).await;
    let listed = store.list(&page()).await.expect("two of three still rule");
    assert_eq!(listed.leases.len(), 1);
    demote(&members[1], &new).await;
    for _ in 0..2 {
        let listed = store.list(&page()).await;
        listed.expect_err("one of three decided for all");
    }
}
