//! What a server's machine may do: somebody sets its clock. The token never falls, nothing is lost.

use crate::common::Scratch;
use mongodb::bson::doc;
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::LeaseStore;
use tenure_testkit::{ReplicaSet, ServerClock};

/// A set of one with a clock of its own, and the store on it.
async fn stepped() -> (
    (ReplicaSet, Scratch),
    Stepped<impl LeaseStore, impl Fn(f64), impl AsyncFn() -> f64>,
) {
    let clock = ServerClock::new().expect("the library is there");
    let set = ReplicaSet::by(&clock).await.expect("a set starts");
    let scratch = Scratch::new(set.uri());
    let database = scratch.client().await.database("admin");
    let stepped = Stepped {
        store: scratch.store().await,
        set: move |ahead| clock.set_ahead(ahead).expect("set"),
        shown: async move || {
            let hello = database.run_command(doc! { "hello": 1 }).await;
            let told = hello.expect("the server answers");
            let now_ms = told
                .get_datetime("localTime")
                .expect("its time")
                .timestamp_millis();
            ahead(u64::try_from(now_ms).expect("after 1970"))
        },
    };
    ((set, scratch), stepped)
}

#[tokio::test]
async fn a_clock_of_mongodb_set_forward_ends_a_lease_early_and_its_term_for_good() {
    let (_set, stepped) = stepped().await;
    stepped
        .clock_set_forward_ends_a_lease_early_and_its_term_for_good()
        .await;
}

#[tokio::test]
async fn a_clock_of_mongodb_set_back_lets_no_token_fall_and_its_holder_renew_and_leave() {
    let (_set, stepped) = stepped().await;
    stepped
        .clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave()
        .await;
}
