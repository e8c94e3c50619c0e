//! What a server's machine may do: somebody sets its clock, its disk is full. The token never falls, nothing
//! is lost.

use crate::common::Scratch;
use tenure_conformance::filling::{Filled, Holders};
use tenure_conformance::stepping::{Stepped, ahead};
use tenure_core::{LeaseStore, Verdict};
use tenure_testkit::{RedisBuild, RedisOptions, RedisServer, ServerClock};

/// A server with a clock of its own, and the store on it.
async fn stepped() -> (
    RedisServer,
    Stepped<impl LeaseStore, impl Fn(f64), impl AsyncFn() -> f64>,
) {
    let clock = ServerClock::new().expect("the library is there");
    let server = RedisServer::start(RedisOptions::durable().by(&clock))
        .await
        .expect("a server starts");
    let scratch = Scratch::on(&server.url());
    let connection = scratch.connection().await;
    let stepped = Stepped {
        store: scratch.store().await,
        set: move |ahead| clock.set_ahead(ahead).expect("set"),
        shown: async move || {
            let mut connection = connection.clone();
            let asked = redis::cmd("TIME").query_async(&mut connection).await;
            let (seconds, micros): (u64, u64) = asked.expect("the test can ask");
            ahead(seconds * 1000 + micros / 1000)
        },
    };
    (server, stepped)
}

#[tokio::test]
async fn a_clock_set_forward_ends_a_lease_early_and_its_term_for_good() {
    let (_server, stepped) = stepped().await;
    stepped
        .clock_set_forward_ends_a_lease_early_and_its_term_for_good()
        .await;
}

#[tokio::test]
async fn a_clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave() {
    let (_server, stepped) = stepped().await;
    stepped
        .clock_set_back_lets_no_token_fall_and_its_holder_renew_and_leave()
        .await;
}

/// Whoever looks at it is told, before a step ends leases.
#[tokio::test]
async fn clock_that_differs_from_ours_is_found_by_the_examination() {
    let clock = ServerClock::new().expect("the library is there");
    let server = RedisServer::start(RedisOptions::durable().by(&clock))
        .await
        .expect("a server starts");
    let store = Scratch::on(&server.url()).store().await;
    for ahead in [-3_600.0, 3_600.0] {
        clock.set_ahead(ahead).expect("set");
        let findings = store.examine().await.expect("an examination");
        let found = findings.iter().find(|finding| finding.subject == "clock");
        let found = found.expect("a finding");
        assert_eq!(found.verdict, Verdict::Warning, "{ahead}: {found:?}");
        assert!(found.detail.contains("differs from ours by"), "{found:?}");
    }
}

/// Its log of writes has no room: the file is `/dev/full`.
#[tokio::test]
async fn redis_whose_disk_is_full_grants_nothing_loses_nothing_and_goes_on_later() {
    for build in [RedisBuild::Redis, RedisBuild::Valkey] {
        let options = RedisOptions::with("--appendonly yes --appendfsync everysec").of(build);
        let server = RedisServer::start(options).await.expect("a server");
        let filled = Filled {
            store: Scratch::on(&server.url()).store().await,
            fill: async || server.fill_disk().await.expect("a full disk"),
            free: async || server.free_disk().await.expect("room"),
            holders: Holders::AreRefused,
            way_out: "(MISCONF); see its log",
        };
        filled
            .server_without_room_grants_nothing_loses_nothing_and_goes_on_later()
            .await;
    }
}
