//! A member of a replica set that was started without it, and is asked as if it were a server of its own.

use crate::common::{LEAST_ROLE, Scratch, persist, request, seconds, who_may, with_database};
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure_core::{Fault, LeaseStore, Leases, Page, StoreError};
use tenure_mongodb::{MongoFence, MongoStore};
use tenure_testkit::{Mongod, ReplicaSet, Size, eventually_async};

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(60);

fn is_told(error: &StoreError, of: &str) {
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    for part in ["stands alone", of, "--replSet"] {
        assert!(error.message.contains(part), "{part} is not in: {error}");
    }
}

/// Its URL names one host, as the set's, and no set: each process that is started then would lead beside the
/// one of the set.
#[tokio::test]
async fn a_member_that_stands_alone_is_refused() {
    let mut set = ReplicaSet::start(Size::One).await.expect("a set");
    let scratch = Scratch::new(format!("mongodb://{}/", set.address(0)));
    let asked = request("job", "holder", seconds(300));
    let store = scratch.store().await;
    persist(&store, &asked).await;
    // As an earlier Tenure has left the leases: by these alone nobody would know.
    let unmarked = doc! { "$unset": { "of": 1 } };
    let leases = scratch.leases().await;
    leases
        .update_one(doc! { "_id": { "tenure": "store" } }, unmarked)
        .await
        .expect("an update");
    set.restart_alone(0).await.expect("it starts");
    for options in ["", "directConnection=true"] {
        let url = scratch.url(options);
        let refused = MongoStore::connect(&url).await.expect_err("a lone member");
        is_told(&refused, "the replica set \"tenure\"");
        let fence = MongoFence::connect(&url, Leases::Here)
            .await
            .expect_err("a lone member");
        is_told(&fence, "the replica set \"tenure\"");
    }
    set.restart(0).await.expect("it starts");
    set.wait_until_complete().await.expect("a set");
    let again = || async { scratch.store().await.acquire(&asked).await };
    eventually_async(PATIENCE, "its lease", again).await;
}

/// To who may do no more with the server than the README grants: it knows by the leases alone of what the
/// server was a member.
#[tokio::test]
async fn a_member_that_stands_alone_is_refused_to_the_least_role() {
    let mut set = ReplicaSet::with_auth(Size::One).await.expect("a set");
    who_may(&set, "secret", &LEAST_ROLE).await;
    let user = tenure_testkit::User::new("service", "secret");
    let url = with_database(&set.uri_as(&user), "bank", "");
    let store = MongoStore::connect(&url).await.expect("connects");
    persist(&store, &request("job", "holder", seconds(300))).await;
    set.restart_alone(0).await.expect("it starts");
    let alone = url.replace("replicaSet=tenure", "directConnection=true");
    let refused = MongoStore::connect(&alone).await.expect_err("a lone member");
    is_told(&refused, "the replica set \"tenure\"");
}

/// What is told of it is where the leases are, whoever has taken them: also of one that was made a set later.
#[tokio::test]
async fn whose_leases_they_are_is_noted_by_who_takes_one_and_is_no_lease() {
    let server = Mongod::start().await.expect("a server");
    let scratch = Scratch::new(server.uri());
    let leases = scratch.leases().await;
    let mark = || async {
        let found = leases.find_one(doc! { "_id": { "tenure": "store" } });
        found.await.expect("a look")
    };
    let store = scratch.store().await;
    let findings = store.examine().await.expect("an examination");
    assert_eq!(mark().await, None, "who only looks writes nothing: {findings:?}");
    persist(&store, &request("job", "holder", seconds(300))).await;
    let alone: Document = mark().await.expect("a mark");
    assert!(!alone.contains_key("of"), "{alone}");
    // As who makes it a server of a set leaves it: the same store.
    leases
        .update_one(
            doc! { "_id": { "tenure": "store" } },
            doc! { "$set": { "of": "the replica set \"gone\"" } },
        )
        .await
        .expect("noted");
    is_told(
        &MongoStore::connect(&scratch.url(""))
            .await
            .expect_err("it is of a set"),
        "\"gone\"",
    );

    let set = Scratch::new(ReplicaSet::shared().await.uri());
    let leases = set.leases().await;
    leases.insert_one(alone.clone()).await.expect("as it was");
    let store = set.store().await;
    persist(&store, &request("job", "holder", seconds(300))).await;
    let noted: Document = leases
        .find_one(doc! { "_id": { "tenure": "store" } })
        .await
        .expect("a look")
        .expect("a mark");
    assert_eq!(noted.get("id"), alone.get("id"));
    assert_eq!(noted.get_str("of").ok(), Some("the replica set \"tenure\""));
    let page = Page::first("", 10);
    let listed = store.list(&page).await.expect("a list");
    assert_eq!(listed.leases.len(), 1, "the mark is no lease: {listed:?}");
    let findings = store.examine().await.expect("an examination");
    let bad = findings
        .iter()
        .find(|finding| finding.verdict == tenure_core::Verdict::Bad);
    assert_eq!(bad, None, "{findings:#?}");
}
