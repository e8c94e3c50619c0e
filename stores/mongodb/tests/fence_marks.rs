//! Pages of marks.

use crate::common::Scratch;
use mongodb::bson::{Document, doc};
use std::sync::Arc;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::{Bump, Fault, Fence, FenceError, FencingToken, LeaseName, Leases, ResourceName, Term};
use tenure_mongodb::MongoFence;
use tenure_testkit::ReplicaSet;

#[tokio::test]
async fn a_damaged_mark_in_mongodb_hides_no_other() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let database = scratch.client().await.database(&scratch.database);
    let marks = database.collection::<Document>("fences");
    let damage = async |resource: &str| {
        let damaged = marks.update_one(doc! { "_id": resource }, doc! { "$set": { "token": "seven" } });
        assert_eq!(damaged.await.expect("damaged").modified_count, 1);
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_mongodb_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    let database = scratch.client().await.database(&scratch.database);
    let marks = database.collection::<Document>("fences");
    let plant = async |resource: &str, number: i64| {
        let planted = marks.update_one(doc! { "_id": resource }, doc! { "$set": { "token": number } });
        assert_eq!(planted.await.expect("planted").modified_count, 1);
    };
    let remove = async |resource: &str| {
        let removed = marks.delete_one(doc! { "_id": resource }).await.expect("removed");
        assert_eq!(removed.deleted_count, 1);
    };
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_mongodb() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    leases_that_nobody_holds_bound_the_first_claim(&scratch.store().await, &fence).await;
}

#[tokio::test]
async fn marks_in_mongodb_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let fence = MongoFence::connect(&scratch.url(""), Leases::Here)
        .await
        .expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}

/// A plain number of `mongosh` is none, and above the mark no claim raises it: "claim again" would be said
/// for ever.
#[tokio::test]
async fn a_stripe_that_holds_no_token_is_told_by_its_number_with_the_way_out() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let database = scratch.client().await.database(&scratch.database);
    let (fence, resource) = (
        MongoFence::new(&database, Leases::Elsewhere),
        ResourceName::new("ledger").expect("a name"),
    );
    let term = |number: u64| {
        let token = FencingToken::new(number).expect("a token");
        Term::new(LeaseName::new("nightly").expect("a name"), token)
    };
    fence.claim(&resource, &term(5)).await.expect("a claim");
    let stripes = database.collection::<Document>("fences");
    let (seventh, typed) = (
        doc! { "_id": { "resource": "ledger", "stripe": 7 } },
        doc! { "$set": { "token": 1e15 } },
    );
    let damaged = stripes.update_one(seventh.clone(), typed).await.expect("damaged");
    assert_eq!(damaged.modified_count, 1);
    let bump = Bump {
        resource: resource.clone(),
        above: None,
        lease: None,
    };
    for refused in [
        fence.claim(&resource, &term(6)).await.map(drop),
        fence.bump(&bump).await.map(drop),
    ] {
        let Err(FenceError::Store(error)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error.fault, Fault::Unreadable, "{error}");
        for part in ["stripe 7", "ledger", "fences", "remove the stripe"] {
            assert!(error.message.contains(part), "{part} is not in: {error}");
        }
    }
    // The way out. Nobody who was refused before is admitted by it.
    stripes.delete_one(seventh).await.expect("removed");
    let stale = fence.claim(&resource, &term(4)).await;
    assert!(matches!(&stale, Err(FenceError::Stale { .. })), "{stale:?}");
    let mark = fence.mark(&resource).await.expect("a look").expect("a mark");
    let next = term(mark.token.number() + 1);
    fence.claim(&resource, &next).await.expect("a claim");
    fence.check(&resource, &next).await.expect("it may enter");
}
