//! A server's clock that somebody sets: the lease may end early or late, the token never falls.

mod common;

use common::Scratch;
use mysql_async::prelude::Queryable as _;
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::LeaseStore;
use tenure_testkit::{Mariadb, ServerClock};
use tokio::sync::Mutex;

/// A server with a clock of its own, and the store on it.
async fn stepped() -> (
    Mariadb,
    Stepped<impl LeaseStore, impl Fn(f64), impl AsyncFn() -> f64>,
) {
    let clock = ServerClock::new().expect("the library is there");
    let server = Mariadb::by(&clock).await.expect("a server starts");
    let scratch = Scratch::on(&server.address()).await;
    let client = Mutex::new(scratch.client().await);
    let stepped = Stepped {
        store: scratch.store().await,
        set: move |ahead| clock.set_ahead(ahead).expect("set"),
        shown: async move || {
            let asked = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000";
            let told = client.lock().await.query_first(asked).await;
            ahead(told.expect("the server tells its time").expect("a row"))
        },
    };
    (server, stepped)
}

#[tokio::test]
async fn a_clock_of_mysql_set_forward_ends_a_lease_early_and_its_term_for_good() {
    let (_server, stepped) = stepped().await;
    stepped
        .clock_set_forward_ends_a_lease_early_and_its_term_for_good()
        .await;
}

#[tokio::test]
async fn a_clock_of_mysql_set_back_lets_no_token_fall_and_its_holder_renew_and_leave() {
    let (_server, stepped) = stepped().await;
    stepped
        .clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave()
        .await;
}
