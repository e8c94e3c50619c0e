//! What an operator is told of a server that works, but not as one would think.
use crate::common::Scratch;
use std::time::Duration;
use tenure_core::{LeaseStore, Verdict};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Fault, FaultProxy, Mariadb, ServerClock};

/// A fail-over to a server with another clock would shift every expiry, and a far one makes short ttls unwise; each is told where
/// it is so.
#[tokio::test]
async fn clock_and_distance_of_a_mysql_are_told_of() {
    let clock = ServerClock::new().unwrap();
    let server = Mariadb::by(&clock).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let proxy = FaultProxy::mysql(server.address()).unwrap();
    let url = scratch.url_at("root", &proxy.address().to_string());
    let store = MysqlStore::connect(&url).await.unwrap();
    let told = async |subject: &str| {
        let findings = store.examine().await.unwrap();
        findings
            .into_iter()
            .find(|finding| finding.subject == subject)
            .unwrap()
    };
    assert_eq!(told("clock").await.verdict, Verdict::Good);
    for seconds in [3600, -3600] {
        clock.set_ahead(f64::from(seconds)).unwrap();
        let finding = told("clock").await;
        assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
        let ahead = finding
            .detail
            .split(' ')
            .find_map(|word| word.parse::<i32>().ok());
        let apart = ahead.unwrap().abs_diff(seconds * 1000);
        assert!(apart < 600_000, "{finding:?}");
        assert!(finding.repair.unwrap().contains("synchronise"));
    }
    clock.set_ahead(0.0).unwrap();
    proxy.set(Fault::Delay {
        to_server: Duration::ZERO,
        to_client: Duration::from_millis(150),
    });
    let finding = told("round trip").await;
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
}
