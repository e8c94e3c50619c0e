//! The replica set is real: it elects, fails over and keeps majority writes.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use tenure_testkit::{ReplicaSet, Size, eventually_async};

#[tokio::test]
async fn three_nodes_accept_majority_writes() {
    let set = ReplicaSet::shared().await;

    let client = Client::with_uri_str(set.uri()).await.unwrap();
    let concern = WriteConcern::builder().w(Acknowledgment::Majority).build();
    let notes = client.database("replica_set").collection::<Document>("notes");
    notes
        .insert_one(doc! { "_id": 1 })
        .write_concern(concern)
        .await
        .unwrap();

    assert_eq!(set.size(), 3);
    assert_eq!(notes.count_documents(doc! { "_id": 1 }).await.unwrap(), 1);
}

/// The fixture outlives the runtime of the test that started it, whichever of the two that was.
#[tokio::test]
async fn shared_set_serves_the_next_test_too() {
    let set = ReplicaSet::shared().await;
    set.wait_until_writable().await.unwrap();
}

#[tokio::test]
async fn freezing_the_primary_leads_to_a_new_one() {
    let mut set = ReplicaSet::start(Size::Three).await.unwrap();

    let before = set.freeze_primary().await.unwrap();
    let after = set.wait_until_writable().await.unwrap();
    assert_ne!(after, before);

    set.thaw(before);
    set.wait_until_complete().await.unwrap();
}

#[tokio::test]
async fn killed_primary_is_replaced_and_comes_back_with_its_data() {
    let mut set = ReplicaSet::start(Size::Three).await.unwrap();
    let before = set.primary().await.unwrap();

    set.kill(before);
    assert_eq!(set.pid(before), None);
    assert_ne!(set.wait_until_writable().await.unwrap(), before);

    set.restart(before).await.unwrap();
    set.wait_until_complete().await.unwrap();
    let client = Client::with_uri_str(set.direct_uri(before)).await.unwrap();
    let ready = client.database("testkit").collection::<Document>("testkit_ready");
    assert_eq!(ready.count_documents(doc! {}).await.unwrap(), 1);
}

#[tokio::test]
async fn primary_that_steps_down_hands_over() {
    let mut set = ReplicaSet::start(Size::Three).await.unwrap();

    let stepped_down = set.step_down().await.unwrap();

    eventually_async(Duration::from_secs(60), "another primary", || async {
        set.wait_until_writable()
            .await
            .map(|primary| primary != stepped_down)
            .unwrap_or(false)
    })
    .await;
}

#[tokio::test]
async fn set_without_one_secondary_accepts_majority_writes() {
    let mut set = ReplicaSet::start(Size::Three).await.unwrap();
    let primary = set.primary().await.unwrap();

    set.freeze((primary + 1) % 3);
    set.wait_until_writable().await.unwrap();

    set.thaw((primary + 1) % 3);
    set.wait_until_complete().await.unwrap();
}

#[tokio::test]
async fn single_node_takes_over_from_itself() {
    let mut set = ReplicaSet::start(Size::One).await.unwrap();

    assert_eq!(set.step_down().await.unwrap(), 0);

    assert_eq!(set.wait_until_writable().await.unwrap(), 0);
}

#[tokio::test]
async fn replica_set_with_authentication_refuses_what_the_role_does_not_grant() {
    let set = ReplicaSet::with_auth(Size::One).await.unwrap();
    let reader = set
        .create_user("reader", "p@ss/word", &[("read", "shop")])
        .await
        .unwrap();

    let client = Client::with_uri_str(set.uri_as(&reader)).await.unwrap();
    let orders = client.database("shop").collection::<Document>("orders");

    assert_eq!(orders.count_documents(doc! {}).await.unwrap(), 0);
    let refusal = orders.insert_one(doc! { "_id": 1 }).await.unwrap_err();
    assert!(refusal.to_string().contains("not authorized"), "{refusal}");
}
