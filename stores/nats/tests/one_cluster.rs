//! A URL whose servers are not of one cluster.

use crate::common::{Scratch, request, seconds, take};
use tenure_core::{Fault, LeaseStore, Verdict};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::{NatsOptions, NatsServer};

async fn server() -> NatsServer {
    NatsServer::start(NatsOptions::default())
        .await
        .expect("a server starts")
}

/// As two servers that were each started alone: whoever comes while the first is down would lead beside who came before, over a
/// bucket of its own.
#[tokio::test]
async fn servers_of_different_clusters_are_refused() {
    let (one, mut other) = (server().await, server().await);
    let url = format!("nats://{},{}", one.address(), other.address());
    let refused = async |url: &str| {
        let error = NatsStore::connect(url).await.expect_err("two leaders");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        let told = format!("{} is of other clusters than {}", other.address(), one.address());
        assert!(error.message.contains(&told), "{error}");
    };
    // Only the first has a bucket by now.
    refused(&url).await;
    drop(
        NatsStore::connect(&other.url())
            .await
            .expect("a bucket of its own"),
    );
    refused(&url).await;
    let fence = NatsFence::connect(&url).await.expect_err("two marks");
    assert_eq!(fence.fault, Fault::Invalid, "{fence}");

    // One that is away tells nothing yet.
    other.kill();
    let store = NatsStore::connect(&url).await.expect("one answers");
    take(&store, &request("job", "a", seconds(60))).await;
    let servers = async || {
        let findings = store.examine().await.expect("it answers");
        let found = findings.into_iter().find(|finding| finding.subject == "servers");
        found.expect("it is examined")
    };
    assert_eq!(servers().await.verdict, Verdict::Good);
    other.restart().await.expect("it comes back");
    let told = servers().await;
    assert!(
        told.verdict == Verdict::Bad && told.detail.contains("is of other clusters"),
        "{told:?}"
    );
}

/// As two machines of which one was cloned of the other: their buckets were made at the same moment.
#[tokio::test]
async fn servers_of_which_one_is_the_clone_of_the_other_are_refused() {
    let (mut one, mut other) = (server().await, server().await);
    drop(NatsStore::connect(&one.url()).await.expect("a bucket"));
    one.kill();
    other.kill();
    other.clone_data_of(&one).expect("a clone");
    one.restart().await.expect("it comes back");
    other.restart().await.expect("it comes back");
    let url = format!("nats://{},{}", one.address(), other.address());
    let error = NatsStore::connect(&url).await.expect_err("two leaders");
    assert_eq!(error.fault, Fault::Invalid, "{error}");
}

/// One that the URL names twice is one.
#[tokio::test]
async fn server_of_two_names_is_one() {
    let server = server().await;
    let names = format!(
        "{},{}",
        server.address(),
        server.address().replace("127.0.0.1", "localhost")
    );
    drop(Scratch::on(&format!("nats://{names}")).store().await);
}
