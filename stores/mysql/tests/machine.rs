//! What a server's machine may do: somebody sets its clock, its disk is full. The token never falls, nothing
//! is lost.

use crate::common::{Scratch, family};
use mysql_async::prelude::Queryable as _;
use tenure_conformance::filling::{Filled, Holders};
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::LeaseStore;
use tenure_testkit::{Mariadb, ServerClock, SqlFamily};
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

/// A tablespace that cannot grow: for the server it is a full disk, down to the space by which a change could
/// be undone. It is given room as an operator would.
#[tokio::test]
async fn mysql_whose_disk_is_full_grants_nothing_loses_nothing_and_goes_on_later() {
    let full = ["innodb-file-per-table=0", "innodb-data-file-path=ibdata1:12M"];
    let server = Mariadb::with_settings(&full).await.expect("a server starts");
    let scratch = Scratch::on(&server.address()).await;
    let server = Mutex::new(server);
    let filled = Filled {
        store: scratch.store().await,
        fill: async || {
            scratch.sql("CREATE TABLE filler (piece LONGBLOB)").await;
            let mut client = scratch.client().await;
            // What large pieces leave, smaller ones fill.
            for bytes in [262_144, 4_000] {
                let insert = format!("INSERT INTO filler VALUES (REPEAT('x', {bytes}))");
                let full = loop {
                    if let Err(error) = client.query_drop(&insert).await {
                        break error.to_string();
                    }
                };
                assert!(full.contains("is full"), "{full}");
            }
        },
        free: async || {
            let room = ["innodb-data-file-path=ibdata1:12M:autoextend"];
            server.lock().await.restart_with(&room).await.expect("room");
        },
        // MySQL keeps by which a change could be undone in tablespaces of its own, where there is room.
        holders: match family() {
            SqlFamily::Mariadb => Holders::AreRefused,
            SqlFamily::Mysql => Holders::Renew,
        },
        way_out: "free space on the server",
    };
    filled
        .server_without_room_grants_nothing_loses_nothing_and_goes_on_later()
        .await;
}
