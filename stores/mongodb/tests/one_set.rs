//! A URL whose servers are not of one replica set.

use crate::common::Scratch;
use tenure_core::Fault;
use tenure_mongodb::{MongoFence, MongoStore};
use tenure_testkit::{ReplicaSet, Size};

/// The driver takes whoever answers first for the set that is meant: of two processes each might lead in another.
#[tokio::test]
async fn servers_of_different_replica_sets_are_refused() {
    let (one, other) = (
        ReplicaSet::shared().await,
        ReplicaSet::start(Size::One).await.unwrap(),
    );
    let set = |uri: &str| uri.rsplit_once("replicaSet=").map(|(_, name)| name.to_owned());
    let scratch = Scratch::new(one.uri());
    for options in [String::new(), format!("replicaSet={}", set(&one.uri()).unwrap())] {
        let url = format!(
            "mongodb://{},{}/{}?{options}",
            one.address(0),
            other.address(0),
            scratch.database
        );
        let error = MongoStore::connect(&url).await.expect_err("two leaders");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains("different replica sets"), "{error}");
        let fence = MongoFence::connect(&url).await.expect_err("two marks");
        assert_eq!(fence.fault, Fault::Invalid, "{fence}");
    }
}

/// Members may have other names than those by which the set knows them.
#[tokio::test]
async fn members_by_other_names_are_of_the_set() {
    let set = ReplicaSet::start(Size::Three).await.unwrap();
    let scratch = Scratch::new(set.uri());
    let others: Vec<String> = (0..set.size())
        .map(|node| set.address(node).replace("127.0.0.1", "localhost"))
        .collect();
    let url = format!("mongodb://{}/{}", others.join(","), scratch.database);
    drop(MongoStore::connect(&url).await.expect("it is one set"));
}
