//! The driver's client: where it lives, and what blocks it.

use crate::common::{Scratch, granted, request, seconds, take};
use std::time::Duration;
use tenure_core::LeaseStore;
use tenure_mongodb::MongoStore;
use tenure_testkit::ReplicaSet;

async fn scratch() -> Scratch {
    Scratch::new(ReplicaSet::shared().await.uri())
}

#[tokio::test]
async fn given_client_serves_as_well() {
    let scratch = scratch().await;
    let client = scratch.client().await;
    let store = MongoStore::with_client(client, &scratch.database, "job_leases")
        .await
        .expect("attaches");
    let asked = request("job", "holder", seconds(60));
    let first = granted(store.acquire(&asked).await.expect("answered"));
    let again = granted(store.acquire(&asked).await.expect("answered"));
    assert_eq!((again.token, again.again), (first.token, true));
}

/// One thread, blocked: whatever the store needs must happen elsewhere.
#[test]
fn blocked_runtime_of_the_user_does_not_stop_a_request_under_way() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let scratch = scratch().await;
        let store = scratch.store().await;
        // The first of all makes the collection, which takes its time.
        take(&store, &request("warm", "holder", seconds(60))).await;
        let asked = request("job", "holder", seconds(60));
        let mut acquiring = store.acquire(&asked);
        // Polled once, so that the request is handed to the store's own thread.
        let early =
            std::future::poll_fn(|context| std::task::Poll::Ready(acquiring.as_mut().poll(context))).await;
        assert!(early.is_pending());
        std::thread::sleep(Duration::from_secs(5));
        // Still not polled again, and yet the term began while everything here stood still.
        let lease = store.get(&asked.name).await.expect("a read").expect("the lease");
        assert!(
            lease.held_for > Duration::from_secs(1),
            "the request waited: {:?}",
            lease.held_for
        );
        let _term = granted(acquiring.await.expect("answered"));
    });
}

#[test]
fn store_works_without_any_runtime_and_is_dropped_anywhere() {
    let scratch = tenure_testkit::block_on(scratch());
    let store = tenure_testkit::block_on(scratch.store());
    let asked = request("job", "holder", seconds(60));
    let grant = tenure_testkit::block_on(take(&store, &asked));
    let watch = tenure_testkit::block_on(store.watch(
        &tenure_core::Scope::Prefix(String::new()),
        tenure_core::Interest::Everything,
    ))
    .expect("a watch");
    let lease = tenure_testkit::block_on(store.get(&asked.name))
        .expect("a read")
        .expect("the lease");
    assert_eq!(lease.token, grant.token);
    // Once outside, once inside a runtime of one thread, with a request and a watch under way.
    let inside = tenure_testkit::block_on(scratch.store());
    drop(store);
    drop(watch);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut getting = inside.get(&asked.name);
        let _pending =
            std::future::poll_fn(|context| std::task::Poll::Ready(getting.as_mut().poll(context))).await;
        drop(getting);
        drop(inside);
    });
}
