//! A bucket that somebody edits while processes are connected to it.

use crate::common::{Beneath, Scratch, granted, key, name, request, seconds, shared_cluster};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Certainty, Fault, Fence, FenceError, FencingToken, LeaseStore, Leases, ResourceName,
    StoreError, Term,
};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::eventually_async;

const PATIENCE: Duration = Duration::from_secs(60);

/// The servers remove each record by themselves a second after it was written.
fn forgetting() -> Value {
    json!({ "max_age": 1_000_000_000, "duplicate_window": 1_000_000_000 })
}

fn remembering() -> Value {
    json!({ "max_age": 0 })
}

/// Why nothing is granted: what is asked meanwhile may be no matter of the bucket.
async fn refused(store: &NatsStore, asked: &Acquire) -> StoreError {
    let error = eventually_async(PATIENCE, "a refusal", async || match store.acquire(asked).await {
        Ok(Acquired::Granted(grant)) => panic!("it leads beside the first: {grant:?}"),
        Err(error) if error.fault == Fault::Unsupported => Ok(error),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
    error
}

async fn is_gone(beneath: &Beneath, key: &str) {
    eventually_async(PATIENCE, "that it is forgotten", async || {
        beneath
            .last(key)
            .await
            .is_none()
            .then_some(())
            .ok_or("it is there")
    })
    .await;
}

/// The holder goes on for as long as its renewals have said, and the record of that is gone.
async fn nobody_is_granted_what_the_bucket_has_forgotten(scratch: &Scratch) {
    let (first, standby) = (scratch.store().await, scratch.store().await);
    let asked = request("job", "first", seconds(300));
    eventually_async(PATIENCE, "a term", || async {
        first.acquire(&asked).await.map(granted)
    })
    .await;
    let beneath = scratch.beneath().await;
    beneath.edit(&forgetting()).await;
    is_gone(&beneath, &key("job")).await;
    let waiting = request("job", "standby", seconds(300));
    let error = refused(&standby, &waiting).await;
    let is_told = ["\"job\"", "--max-age=0"]
        .iter()
        .all(|told| error.message.contains(told));
    assert!(is_told, "{error}");
    // Whoever has mended it need not start it anew.
    beneath.edit(&remembering()).await;
    eventually_async(PATIENCE, "a term", || async {
        standby.acquire(&waiting).await.map(granted)
    })
    .await;
}

#[tokio::test]
async fn nobody_is_granted_what_a_bucket_has_forgotten_that_was_edited() {
    nobody_is_granted_what_the_bucket_has_forgotten(&Scratch::new().await).await;
}

#[tokio::test]
async fn nobody_is_granted_what_a_bucket_of_a_cluster_has_forgotten_that_was_edited() {
    nobody_is_granted_what_the_bucket_has_forgotten(&Scratch::on(&shared_cluster().await.url())).await;
}

#[tokio::test]
async fn bucket_that_is_edited_so_that_it_will_not_do_is_told_with_the_way_out() {
    for (edit, way_out) in [
        (
            json!({ "discard": "old", "max_bytes": 1_000_000 }),
            "--discard=new",
        ),
        (json!({ "sources": [{ "name": "KV_elsewhere" }] }), "sources"),
        (
            json!({ "subject_transform": { "src": ">", "dest": "moved.>" } }),
            "subject_transform",
        ),
        (json!({ "max_msg_size": 100 }), "--max-msg-size"),
    ] {
        let scratch = Scratch::new().await;
        let store = scratch.store().await;
        scratch.beneath().await.edit(&edit).await;
        let error = refused(&store, &request("job", "a", seconds(60))).await;
        assert!(error.message.contains(way_out), "{edit}: {error}");
    }
}

/// By the mark alone it is known here that its term is over.
#[tokio::test]
async fn earlier_term_is_not_admitted_where_an_edited_bucket_has_forgotten_the_mark() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Elsewhere).await;
    let fence = fence.expect("a fence");
    let ledger = ResourceName::new("ledger").expect("a name");
    let term = |token| Term::new(name("job"), FencingToken::new(token).expect("a token"));
    fence.claim(&ledger, &term(8)).await.expect("claimed");
    let beneath = scratch.beneath().await;
    beneath.edit(&forgetting()).await;
    is_gone(&beneath, "tenure-fence.ledger").await;
    match fence.claim(&ledger, &term(7)).await {
        Err(FenceError::Store(error)) if error.fault == Fault::Unsupported => {
            assert!(error.message.contains("--max-age=0"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
