//! URLs that lead to two stores: members of two clusters, or sentinels of two primaries. Each process would
//! go by whichever answers first.

use crate::common::{Scratch, refused, request, seconds, take};
use std::time::Duration;
use tenure_conformance::strangers::{cut, is_refused};
use tenure_core::{Fault, LeaseStore, StoreError};
use tenure_redis::RedisStore;
use tenure_testkit::{
    Fault as ProxyFault, FaultProxy, RedisOptions, RedisSentinels, RedisServer, eventually_async,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster of one member, which has all slots.
async fn cluster_of_one() -> RedisServer {
    let server = RedisServer::start(RedisOptions::with("--cluster-enabled yes")).await;
    let server = server.expect("a server");
    let told = server.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    assert_eq!(told.expect("asked"), "+OK");
    let is_up = async || {
        let told = server.ask_all("CLUSTER INFO").unwrap_or_default();
        told.contains("cluster_state:ok").then_some(()).ok_or(told)
    };
    eventually_async(PATIENCE, "a cluster", is_up).await;
    server
}

/// From now on it keeps which store it is.
async fn led_by_somebody(url: &str) {
    let store = eventually_async(PATIENCE, "a store", || RedisStore::connect(url)).await;
    take(&store, &request("first", "somebody", seconds(1))).await;
}

#[tokio::test]
async fn members_of_two_clusters_are_refused_at_connect() {
    let (one, other) = (cluster_of_one().await, cluster_of_one().await);
    let both = format!("redis://{},{}", one.address(), other.address());
    // A fail-over may look alike.
    let error = refused(&both).await;
    assert_eq!(error.fault, Fault::AnotherStore, "{error}");
    led_by_somebody(&one.url()).await;
    let error = refused(&both).await;
    assert_eq!(error.fault, Fault::AnotherStore, "{error}");
    led_by_somebody(&other.url()).await;
    let error = refused(&both).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(
        error.message.contains("is of store") && error.message.contains("lead to one server"),
        "{error}"
    );
}

/// That the other one is silent when a store connects makes it no member.
#[tokio::test]
async fn member_of_another_cluster_is_passed_over_for_ours() {
    struct Cluster;
    impl tenure_conformance::strangers::Address for Cluster {
        const SAID: &str = "is of store";
        async fn lead_to_the_stranger(&self) {}
        async fn lead_back(&self) {}
        async fn is_untouched(&self) {}
    }
    let (ours, other) = (cluster_of_one().await, cluster_of_one().await);
    led_by_somebody(&other.url()).await;
    let proxies =
        [ours.address(), other.address()].map(|address| FaultProxy::redis(address).expect("a proxy"));
    let [to_ours, to_other] = &proxies;
    let url = format!("redis://{},{}", to_ours.address(), to_other.address());
    to_other.set(ProxyFault::Refuse);
    let store = RedisStore::connect(&url).await.expect("connects");
    let asked = request("job", "a", seconds(300));
    let token = take(&store, &asked).await.token;
    to_other.set(ProxyFault::Pass);
    to_ours.set(ProxyFault::Refuse);
    cut(&[to_ours]).await;
    is_refused::<Cluster>("is of store", async || store.acquire(&asked).await.err()).await;
    to_ours.set(ProxyFault::Pass);
    let again = async || -> Result<_, StoreError> { store.get(&asked.name).await };
    let lease = eventually_async(PATIENCE, "ours", again).await.expect("a lease");
    assert_eq!(lease.token, token);
}

#[tokio::test]
async fn sentinels_of_two_primaries_are_refused_at_connect() {
    let (one, other) = (
        RedisSentinels::start().await.expect("sentinels"),
        RedisSentinels::start().await.expect("sentinels"),
    );
    let (own, more) = (one.url(), other.url());
    let more = more.trim_start_matches("redis+sentinel://");
    let (more, _options) = more.split_once('?').expect("options");
    let both = own.replace('?', &format!(",{more}?"));
    for url in [own, other.url()] {
        led_by_somebody(&Scratch::on(&url).url).await;
    }
    let error = refused(&both).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.message.contains("is of store"), "{error}");
}
