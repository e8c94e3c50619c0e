//! A server's clock that somebody sets: the lease may end early or late, the token never falls.

mod common;

use common::Scratch;
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::LeaseStore;
use tenure_testkit::{Postgres, ServerClock};

/// A server with a clock of its own, and the store on it.
async fn stepped() -> (
    Postgres,
    Stepped<impl LeaseStore, impl Fn(f64), impl AsyncFn() -> f64>,
) {
    let clock = ServerClock::new().expect("the library is there");
    let server = Postgres::by(&clock).await.expect("a server starts");
    let scratch = Scratch::on(&server.uri()).await;
    let client = scratch.client().await;
    let stepped = Stepped {
        store: scratch.store().await,
        set: move |ahead| clock.set_ahead(ahead).expect("set"),
        shown: async move || {
            let asked = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            let row = client
                .query_one(asked, &[])
                .await
                .expect("the server tells its time");
            ahead(u64::try_from(row.get::<_, i64>(0)).expect("after 1970"))
        },
    };
    (server, stepped)
}

#[tokio::test]
async fn a_clock_of_postgres_set_forward_ends_a_lease_early_and_its_term_for_good() {
    let (_server, stepped) = stepped().await;
    stepped
        .clock_set_forward_ends_a_lease_early_and_its_term_for_good()
        .await;
}

#[tokio::test]
async fn a_clock_of_postgres_set_back_lets_no_token_fall_and_its_holder_renew_and_leave() {
    let (_server, stepped) = stepped().await;
    stepped
        .clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave()
        .await;
}
