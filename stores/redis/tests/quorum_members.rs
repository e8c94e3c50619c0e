//! Which servers may be the members of a quorum.

use tenure_core::{Fault, Finding, LeaseStore, Verdict};
use tenure_redis::QuorumStore;
use tenure_testkit::Fault::Refuse;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer};

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
