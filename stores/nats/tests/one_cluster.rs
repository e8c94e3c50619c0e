//! A URL whose servers are not of one cluster.

use crate::common::{Scratch, granted, in_time, request, seconds, shared_cluster, take};
use std::time::Duration;
use tenure_core::{Fault, LeaseStore, Leases, StoreError, Verdict};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::{NatsOptions, NatsServer, eventually_async, free_port};

/// For a loaded machine: a server that stalls tells nothing, and who tells nothing is not looked at.
const PATIENCE: Duration = Duration::from_secs(60);

async fn server() -> NatsServer {
    NatsServer::start(NatsOptions::default())
        .await
        .expect("a server starts")
}

/// As two servers that were each started alone: whoever comes while the first is down would lead beside who
/// came before, over a bucket of its own.
#[tokio::test]
async fn servers_of_different_clusters_are_refused() {
    let (one, mut other) = (server().await, server().await);
    let url = format!("nats://{},{}", one.address(), other.address());
    let told = format!("{} is of other clusters than {}", other.address(), one.address());
    // Only the first has a bucket by now.
    let error = refused(|| NatsStore::connect(&url)).await;
    assert!(error.message.contains(&told), "{error}");
    let theirs = other.url();
    drop(in_time("a bucket of its own", || NatsStore::connect(&theirs)).await);
    let error = refused(|| NatsStore::connect(&url)).await;
    assert!(error.message.contains(&told), "{error}");
    refused(|| NatsFence::connect(&url, Leases::Here)).await;

    // One that is away tells nothing yet.
    other.kill();
    let store = in_time("a store", || NatsStore::connect(&url)).await;
    take(&store, &request("job", "a", seconds(60))).await;
    let servers = async || {
        let findings = store.examine().await.expect("it answers");
        let found = findings.into_iter().find(|finding| finding.subject == "servers");
        found.expect("it is examined")
    };
    assert_eq!(servers().await.verdict, Verdict::Good);
    other.restart().await.expect("it comes back");
    eventually_async(PATIENCE, "what it is", async || {
        let told = servers().await;
        let is_told = told.verdict == Verdict::Bad && told.detail.contains("is of other clusters");
        is_told.then_some(()).ok_or(format!("{told:?}"))
    })
    .await;
}

/// Why neither is made of the two, at last.
async fn refused<T>(make: impl AsyncFn() -> Result<T, StoreError>) -> StoreError {
    let error = eventually_async(PATIENCE, "a refusal", async || match make().await {
        Ok(_made) => Err("it was made".to_owned()),
        Err(error) if error.fault == Fault::Unreachable => Err(error.to_string()),
        Err(error) => Ok(error),
    })
    .await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    error
}

/// As two machines of which one was cloned of the other: their buckets were made at the same moment.
#[tokio::test]
async fn servers_of_which_one_is_the_clone_of_the_other_are_refused() {
    let (mut one, mut other) = (server().await, server().await);
    let first = one.url();
    drop(in_time("a bucket", || NatsStore::connect(&first)).await);
    one.kill();
    other.kill();
    other.clone_data_of(&one).expect("a clone");
    one.restart().await.expect("it comes back");
    other.restart().await.expect("it comes back");
    let url = format!("nats://{},{}", one.address(), other.address());
    refused(|| NatsStore::connect(&url)).await;
}

/// It has one of leaf nodes, and no cluster: it says that it is of one that has its own name.
fn a_leaf() -> NatsOptions {
    NatsOptions::default().with("leafnodes { remotes: [ { url: \"nats-leaf://127.0.0.1:1\" } ] }\n")
}

#[tokio::test]
async fn bucket_of_a_leaf_node_of_no_cluster_is_made_with_one_copy() {
    let leaf = NatsServer::start(a_leaf()).await.expect("a server starts");
    let scratch = Scratch::on(&leaf.url());
    let store = scratch.store().await;
    assert_eq!(scratch.beneath().await.info().await["config"]["num_replicas"], 1);
    take(&store, &request("job", "a", seconds(60))).await;
}

#[tokio::test]
async fn leaf_nodes_of_no_cluster_are_servers_of_different_clusters() {
    let start = async || NatsServer::start(a_leaf()).await.expect("a server starts");
    let (mut one, mut other) = (start().await, start().await);
    let url = format!("nats://{},{}", one.address(), other.address());
    let first = one.url();
    drop(in_time("a bucket", || NatsStore::connect(&first)).await);
    refused(|| NatsStore::connect(&url)).await;
    // Also where one is the clone of the other.
    one.kill();
    other.kill();
    other.clone_data_of(&one).expect("a clone");
    one.restart().await.expect("it comes back");
    other.restart().await.expect("it comes back");
    refused(|| NatsStore::connect(&url)).await;
}

/// Two that share an account, and no bucket: whoever connects to the one leads beside whoever connects to the
/// other.
#[tokio::test]
async fn jetstream_domain_of_a_bucket_is_told_by_the_examination() {
    let port = free_port();
    let start = async |domain: Option<&str>, settings: &str| {
        let jetstream = domain.map(|domain| format!("domain: {domain}"));
        let options = NatsOptions {
            jetstream: Some(jetstream.unwrap_or_default()),
            ..NatsOptions::default().with(settings)
        };
        NatsServer::start(options).await.expect("a server starts")
    };
    let alone = start(None, "").await;
    let hub = start(
        Some("hub"),
        &format!("leafnodes {{ listen: \"127.0.0.1:{port}\" }}\n"),
    )
    .await;
    let leaf = start(
        Some("leaf"),
        &format!("leafnodes {{ remotes: [ {{ url: \"nats-leaf://127.0.0.1:{port}\" }} ] }}\n"),
    )
    .await;
    eventually_async(PATIENCE, "the leaf node's connection", async || {
        let told = hub.look("/leafz").map_err(|error| error.to_string())?;
        match told["leafnodes"].as_u64() {
            Some(1) => Ok(()),
            _ => Err(told.to_string()),
        }
    })
    .await;
    for (server, domain) in [(&alone, None), (&hub, Some("hub")), (&leaf, Some("leaf"))] {
        let url = server.url();
        let store = in_time("a bucket", || NatsStore::connect(&url)).await;
        let findings = store.examine().await.expect("an examination");
        let bucket = findings.into_iter().find(|finding| finding.subject == "bucket");
        let bucket = bucket.expect("it is examined");
        match domain {
            None => assert_eq!(bucket.verdict, Verdict::Good, "{bucket:?}"),
            Some(domain) => {
                assert_eq!(bucket.verdict, Verdict::Warning, "{bucket:?}");
                let named = format!("domain \"{domain}\"");
                assert!(bucket.detail.contains(&named), "{bucket:?}");
            }
        }
    }
}

/// Each of them tells of the same copy.
#[tokio::test]
async fn servers_of_a_cluster_are_of_one_although_one_alone_keeps_the_bucket() {
    let scratch = Scratch::on(&shared_cluster().await.url());
    let store = scratch.store_with("?replicas=1").await;
    assert_eq!(scratch.beneath().await.info().await["config"]["num_replicas"], 1);
    eventually_async(PATIENCE, "a term", async || {
        store
            .acquire(&request("job", "a", seconds(60)))
            .await
            .map(granted)
    })
    .await;
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
