//! Which servers may be the members of a quorum.

use crate::common::{Three, request, seconds, take};
use std::time::Duration;
use tenure_core::{Durability, Fault, Finding, LeaseStore, Verdict};
use tenure_redis::QuorumStore;
use tenure_testkit::Fault::Refuse;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer, eventually_async};

/// It would count twice, and decide with itself.
#[tokio::test]
async fn server_under_two_names_is_no_two_members() {
    let servers = [RedisOptions::default(), RedisOptions::durable()].map(RedisServer::start);
    let [one, other] = servers;
    let (one, other) = (one.await.expect("a server"), other.await.expect("a server"));
    let (host, port) = (one.address(), one.port());
    for names in [
        format!("{host},localhost:{port},{}", other.address()),
        format!("{},{host},localhost:{port}", other.address()),
    ] {
        let error = QuorumStore::connect(&format!("redis+quorum://{names}"))
            .await
            .expect_err("one server has two votes");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(
            error.message.contains(&host) && error.message.contains("localhost"),
            "{error}"
        );
    }
    // One that says nothing when the store connects is known when it is examined.
    let twin = FaultProxy::redis(one.address()).expect("a proxy");
    twin.set(Refuse);
    let names = format!("{host},{},{}", twin.address(), other.address());
    let store = QuorumStore::connect(&format!("redis+quorum://{names}"))
        .await
        .expect("two of three answer");
    let is_bad = |finding: &Finding| finding.verdict == Verdict::Bad;
    let findings = store.examine().await.expect("an examination");
    assert!(!findings.iter().any(is_bad), "{findings:?}");
    twin.heal();
    let findings = store.examine().await.expect("an examination");
    let told = findings.iter().find(|finding| is_bad(finding));
    let told = told.unwrap_or_else(|| panic!("{findings:?}"));
    assert!(told.detail.contains("one server"), "{told:?}");
}

/// Nobody knows what it keeps, and it may be the one that two majorities share.
#[tokio::test]
async fn quorum_of_which_a_member_is_away_says_fence_only() {
    let mut three = Three::of(RedisOptions::durable(), 2).await;
    let hosts: Vec<String> = three.servers.iter().map(RedisServer::address).collect();
    let durability = async || {
        let url = format!("redis+quorum://{}", hosts.join(","));
        let store = QuorumStore::connect(&url).await.expect("two of three answer");
        store.traits().durability
    };
    // One that is slow to answer tells nothing either.
    let is_safe = async || durability().await == Durability::Safe;
    eventually_async(Duration::from_secs(60), "a quorum that is safe", is_safe).await;
    three.servers[1].kill();
    let told = durability().await;
    assert!(
        matches!(told, Durability::FenceOnly(why) if why.contains("did not tell")),
        "{told:?}"
    );
}

/// One member needs a person, and another comes back by itself: then there is a majority again, and whoever
/// campaigns goes on.
#[tokio::test]
async fn mistake_in_one_member_is_told_as_lasting_only_where_it_stands_in_the_way() {
    let three = Three::behind_a_proxy(2).await;
    take(&three.store, &request("warm", "a", seconds(300))).await;
    let may_write_nothing = ["SETUSER", "default", "-hset"];
    three.asked(0, "ACL", &may_write_nothing).await;
    three.proxy.set(Refuse);
    three.proxy.cut_connections();
    let asked = request("job", "a", seconds(300));
    let passing = three.store.acquire(&asked).await.expect_err("one of three can");
    assert!(!passing.fault.is_misconfiguration(), "{passing}");
    three.asked(1, "ACL", &may_write_nothing).await;
    let lasting = three.store.acquire(&asked).await.expect_err("none of three can");
    assert_eq!(lasting.fault, Fault::Forbidden, "{lasting}");
}

/// As in one configuration for all machines, each of which has a server of its own.
#[tokio::test]
async fn member_that_is_another_server_on_each_machine_is_refused() {
    for names in [
        "localhost,r2.example,r3.example",
        "r1.example,127.0.0.1,r3.example",
        "r1.example,r2.example,[::1]",
    ] {
        let error = QuorumStore::connect(&format!("redis+quorum://{names}"))
            .await
            .expect_err("it leads elsewhere from elsewhere");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains("localhost"), "{error}");
    }
}
