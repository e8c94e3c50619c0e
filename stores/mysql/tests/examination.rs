//! What an operator is told of a server that works, but not as one would think.
use crate::common::Scratch;
use std::time::Duration;
use tenure_conformance::asking::{another_clock_is_told_of, finding};
use tenure_core::Verdict;
use tenure_mysql::MysqlStore;
use tenure_testkit::{Fault, FaultProxy, Mariadb, ServerClock};

/// A fail-over to a server with another clock would shift every expiry, and a far one makes short ttls
/// unwise; each is told where it is so.
#[tokio::test]
async fn clock_and_distance_of_a_mysql_are_told_of() {
    let clock = ServerClock::new().unwrap();
    let server = Mariadb::by(&clock).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let url = scratch.url_at("root", &proxy.address().to_string());
    let store = MysqlStore::connect(&url).await.unwrap();
    another_clock_is_told_of(&store, |seconds| clock.set_ahead(seconds).unwrap()).await;
    proxy.set(Fault::Delay {
        to_server: Duration::ZERO,
        to_client: Duration::from_millis(150),
    });
    let told = finding(&store, "round trip").await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
}

/// The server would end the connection at such a renewal, each time, for all the leases of the batch.
#[tokio::test]
async fn mysql_that_takes_small_packets_alone_is_told_of() {
    let server = Mariadb::with_settings(&["max-allowed-packet=1M"]).await.unwrap();
    let store = Scratch::on(&server.address()).await.store().await;
    let told = finding(&store, "packets").await;
    assert_eq!(told.verdict, Verdict::Warning, "{told:?}");
}
