//! A URL whose servers are not of one replica set.

use crate::common::Scratch;
use std::time::{Duration, Instant};
use tenure_core::{Fault, Leases};
use tenure_mongodb::{MongoFence, MongoStore};
use tenure_testkit::{ReplicaSet, Size, eventually_async};

/// The driver takes whoever answers first for the set that is meant: of two processes each might lead in
/// another.
#[tokio::test]
async fn servers_of_different_replica_sets_are_refused() {
    let (one, other) = (
        ReplicaSet::shared().await,
        ReplicaSet::start(Size::One).await.unwrap(),
    );
    let set = |uri: &str| uri.rsplit_once("replicaSet=").map(|(_, name)| name.to_owned());
    let named = format!("replicaSet={}", set(&one.uri()).unwrap());
    for options in ["", &named] {
        are_refused([one, &other], options).await;
    }
}

/// Where the URL names one of them, the driver leaves the other out by itself.
#[tokio::test]
async fn servers_of_replica_sets_of_different_names_are_refused() {
    let other = ReplicaSet::named("another", Size::One).await.unwrap();
    are_refused([ReplicaSet::shared().await, &other], "").await;
}

async fn are_refused([one, other]: [&ReplicaSet; 2], options: &str) {
    let scratch = Scratch::new(one.uri());
    let url = format!(
        "mongodb://{},{}/{}?{options}",
        one.address(0),
        other.address(0),
        scratch.database
    );
    let store = || async { MongoStore::connect(&url).await.err() };
    let error = refused("two leaders", store).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.message.contains("different replica sets"), "{error}");
    let fence = || async { MongoFence::connect(&url, Leases::Here).await.err() };
    let fence = refused("two marks", fence).await;
    assert_eq!(fence.fault, Fault::Invalid, "{fence}");
}

/// Why one was refused: a server that a slow machine keeps from telling its set in time is not looked at, so
/// in one of some tries.
async fn refused<E, F: Future<Output = Option<E>>>(what: &str, connecting: impl Fn() -> F) -> E {
    for _try in 0..TRIES_MAX {
        let began = Instant::now();
        if let Some(error) = connecting().await {
            return error;
        }
        let took = began.elapsed();
        assert!(took >= LOOK_TIME_MAX, "{what}: both were taken within {took:?}");
    }
    panic!("{what}: none of {TRIES_MAX} was refused");
}

/// How long who connects waits for a server to tell its set.
const LOOK_TIME_MAX: Duration = Duration::from_millis(700);

/// How often a machine may be too slow for what a test must meet.
const TRIES_MAX: u32 = 10;

/// Members may have other names than those by which the set knows them.
#[tokio::test]
async fn members_by_other_names_are_of_the_set() {
    let set = ReplicaSet::start(Size::Three).await.unwrap();
    set.become_patient().await.unwrap();
    let scratch = Scratch::new(set.uri());
    let others: Vec<String> = (0..set.size())
        .map(|node| set.address(node).replace("127.0.0.1", "localhost"))
        .collect();
    let url = format!("mongodb://{}/{}", others.join(","), scratch.database);
    let connect = || MongoStore::connect(&url);
    drop(eventually_async(Duration::from_secs(30), "it is one set", connect).await);
}
