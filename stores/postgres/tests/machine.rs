//! What a server's machine may do: somebody sets its clock, its disk is full. The token never falls, nothing
//! is lost.

use crate::common::Scratch;
use tenure_conformance::filling::{Filled, Holders};
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::LeaseStore;
use tenure_testkit::{Postgres, ServerClock};
use tokio_postgres::error::SqlState;

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

/// A file that cannot grow, as its server is not let: it writes a part of a page, and finds the disk full.
#[tokio::test]
async fn postgres_whose_disk_is_full_grants_nothing_loses_nothing_and_goes_on_later() {
    // Nobody makes room by the way.
    let server = Postgres::with_settings(&["autovacuum=off"])
        .await
        .expect("a server starts");
    let scratch = Scratch::on(&server.uri()).await;
    let filled = Filled {
        store: scratch.store().await,
        fill: async || {
            server.limit_files(Some(FILE_BYTES_MAX)).expect("limited");
            let client = scratch.client().await;
            let full = client
                .batch_execute(&FILLERS.replace("{schema}", &scratch.schema))
                .await;
            let full = full.expect_err("more than the file holds");
            assert_eq!(full.code(), Some(&SqlState::DISK_FULL), "{full:?}");
        },
        free: async || server.limit_files(None).expect("let go"),
        holders: Holders::Renew,
        way_out: "free space on the server",
    };
    filled
        .server_without_room_grants_nothing_loses_nothing_and_goes_on_later()
        .await;
}

/// More than a segment of the server's log, which must go on, and not a number of whole pages.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024 + 100;

/// More leases than a file of that size holds, as half of every page stays free. None is larger than those
/// that are asked for afterwards, for which a remainder could be enough.
const FILLERS: &str = "INSERT INTO {schema}.leases
    (name, owner, incarnation, token, attempt, terms, ttl_ms, created_at, acquired_at, expires_at, note)
    SELECT 'filler-' || number, 'nobody', repeat('0', 32), 1, 1, 1, 1000, now(), now(), now(), ''
    FROM generate_series(1, 60000) AS number";
