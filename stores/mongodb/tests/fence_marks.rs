//! Pages of marks.

use crate::common::Scratch;
use mongodb::bson::{Document, doc};
use std::sync::Arc;
use tenure_conformance::marks::{a_damaged_mark_hides_no_other, marks_are_in_the_order_of_their_resources};
use tenure_mongodb::MongoFence;
use tenure_testkit::ReplicaSet;

#[tokio::test]
async fn a_damaged_mark_in_mongodb_hides_no_other() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url("")).await.expect("a fence");
    let database = scratch.client().await.database(&scratch.database);
    let marks = database.collection::<Document>("fences");
    let damage = async |resource: &str| {
        let damaged = marks.update_one(doc! { "_id": resource }, doc! { "$set": { "token": "seven" } });
        assert_eq!(damaged.await.expect("damaged").modified_count, 1);
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn marks_in_mongodb_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url("")).await.expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}
