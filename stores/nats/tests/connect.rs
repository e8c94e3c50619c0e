//! Which servers, accounts and buckets are taken, and what is said of the others.

use crate::common::{Scratch, name, request, seconds, shared, take};
use serde_json::json;
use std::time::Duration;
use tenure_conformance::asking::only_the_cleaner_cleans_up;
use tenure_core::{Certainty, Durability, Fault, LeaseStore, StoreError, Verdict};
use tenure_nats::NatsStore;
use tenure_testkit::{NatsCluster, NatsOptions, NatsServer, eventually_async};

async fn refused(url: &str) -> StoreError {
    let error = NatsStore::connect(url).await.expect_err("it is refused");
    assert_eq!(error.message.lines().count(), 1, "{error}");
    assert!(!error.message.contains("hunter2"), "{error}");
    error
}

#[tokio::test]
async fn urls_that_cannot_be_read_are_refused_without_their_secrets() {
    for url in [
        "nats:",
        "nats://",
        "nats://host:port",
        "nats://user:hunter2@",
        "nats://user:hunter2?x@host",
        "nats://host/a.b",
        "nats://host/bucket?replicas=2",
        "nats://host/bucket?rateErrorPpm=fast",
        "nats://host?hunter2=1",
        "nats://user:hunter2@host?replicas=1&replicas=3",
        "nats://user:hunter2@host?creds=/etc/nats/user.creds",
        "nats://host?creds=",
        "nats+tls://user:hunter2@host?ca=",
        "nats+tls://user:hunter2@host?cert=/etc/nats/cert.pem",
        "nats://user:hunter2@host?ca=/etc/nats/ca.pem",
        "natss://host",
        // As a client of NATS takes them: read as one URL, the first or the last alone would be asked.
        "nats://a:4222,nats://b:4222/app",
        "nats://user:hunter2@a,nats://user:hunter2@b",
    ] {
        let error = refused(url).await;
        assert_eq!(error.fault, Fault::Invalid, "{url}: {error}");
        let is_list = url.matches("://").count() > 1;
        assert_eq!(
            error.message.contains("write the scheme once"),
            is_list,
            "{error}"
        );
    }
}

#[tokio::test]
async fn servers_that_are_not_there_are_unreachable_and_the_next_one_is_asked() {
    let error = refused("nats://127.0.0.1:1/app").await;
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Unreachable, Certainty::NotApplied),
        "{error}"
    );
    assert!(error.message.contains("127.0.0.1:1"), "{error}");
    let alive = shared().await.address();
    let scratch = Scratch::on(&format!("nats://127.0.0.1:1,{alive}"));
    let store = scratch.store().await;
    take(&store, &request("job", "a", seconds(60))).await;
}

#[tokio::test]
async fn bucket_is_made_with_one_revision_on_disk_and_nothing_that_forgets() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let config = scratch.beneath().await.info().await["config"].clone();
    assert_eq!(config["max_msgs_per_subject"], 1);
    assert_eq!(config["storage"], "file");
    assert_eq!(config["discard"], "new");
    assert_eq!(config["max_age"], 0);
    assert_eq!(config["allow_direct"], false);
    assert_eq!(config["num_replicas"], 1);
    assert!(store.traits().location.contains(&scratch.bucket));
    // Another process finds it, and makes no other.
    let other = scratch.store().await;
    let term = take(&store, &request("job", "a", seconds(60))).await;
    let lease = other
        .get(&name("job"))
        .await
        .expect("a read")
        .expect("the record");
    assert_eq!(lease.token, term.token);
}

/// Each would lose records, or takes no writes, or one alone, or what nobody compared; all are left as they
/// are.
#[tokio::test]
async fn buckets_that_would_lose_records_are_refused_with_the_way_out() {
    for (config, fault, way_out) in [
        (
            json!({ "max_age": 3_600_000_000_000_u64 }),
            Fault::Unsupported,
            "--max-age=0",
        ),
        (
            json!({ "discard": "old", "max_bytes": 1_000_000 }),
            Fault::Unsupported,
            "--discard=new",
        ),
        (
            json!({ "retention": "workqueue" }),
            Fault::Unsupported,
            "name another bucket",
        ),
        (
            json!({ "max_msg_size": 100 }),
            Fault::Unsupported,
            "--max-msg-size",
        ),
        (json!({ "no_ack": true }), Fault::Unsupported, "no_ack"),
        (
            json!({ "discard": "new", "discard_new_per_subject": true }),
            Fault::Unsupported,
            "--no-discard-per-subject",
        ),
        (
            json!({ "sources": [{ "name": "KV_elsewhere" }] }),
            Fault::Unsupported,
            "name another bucket",
        ),
        (
            json!({ "subject_transform": { "src": ">", "dest": "moved.>" } }),
            Fault::Unsupported,
            "subject_transform",
        ),
    ] {
        let scratch = Scratch::new().await;
        let beneath = scratch.beneath().await;
        beneath.make(config.clone()).await;
        let before = beneath.info().await["config"].clone();
        let error = refused(&scratch.store_url()).await;
        assert_eq!(error.fault, fault, "{config}: {error}");
        assert!(error.message.contains(way_out), "{config}: {error}");
        assert_eq!(beneath.info().await["config"], before);
    }
}

#[tokio::test]
async fn stream_of_another_program_and_a_mirror_are_refused() {
    let scratch = Scratch::new().await;
    let beneath = scratch.beneath().await;
    beneath
        .make(json!({ "subjects": ["orders.*"], "max_msgs_per_subject": -1 }))
        .await;
    let error = refused(&scratch.store_url()).await;
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("no key-value bucket"), "{error}");

    let (source, mirror) = (Scratch::new().await, Scratch::new().await);
    drop(source.store().await);
    let config = json!({
        "name": mirror.stream(),
        "mirror": { "name": source.stream() },
        "storage": "file",
    });
    let made = mirror
        .beneath()
        .await
        .call(&format!("STREAM.CREATE.{}", mirror.stream()), config)
        .await;
    assert_eq!(made.get("error"), None, "{made}");
    let error = refused(&mirror.store_url()).await;
    assert_eq!(error.fault, Fault::ReadOnly, "{error}");
}

/// Keys of another program in the same bucket are no leases, and are left alone.
#[tokio::test]
async fn keys_of_another_program_are_left_alone() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let beneath = scratch.beneath().await;
    beneath.put("colour", b"green", &[]).await;
    beneath.put("lease.not.ours", b"green", &[]).await;
    take(&store, &request("job", "a", seconds(60))).await;
    let page = tenure_core::Page::first("", 10);
    let listed = store.list(&page).await.expect("a page").leases;
    let shown = format!("{listed:?}");
    assert_eq!(
        listed.len(),
        2,
        "the lease, and what stands where leases are: {shown}"
    );
    assert!(
        shown.contains("lease.not.ours") && !shown.contains("colour"),
        "{shown}"
    );
    assert_eq!(
        beneath.last("lease.not.ours").await.expect("it is there").1,
        b"green"
    );
}

#[tokio::test]
async fn account_without_jetstream_is_told() {
    let none = NatsServer::start(NatsOptions {
        jetstream: None,
        ..NatsOptions::default()
    })
    .await
    .expect("a server");
    let accounts = "accounts { A { users: [{user: a, password: hunter2}] }, \
                    B { jetstream: enabled, users: [{user: b, password: hunter2}] } }\n";
    let some = NatsServer::start(NatsOptions::default().with(accounts))
        .await
        .expect("a server");
    for url in [none.url(), format!("nats://a:hunter2@{}", some.address())] {
        let error = refused(&url).await;
        assert_eq!(error.fault, Fault::Unsupported, "{error}");
        assert!(error.message.contains("JetStream"), "{error}");
    }
    let url = format!("nats://b:hunter2@{}", some.address());
    let store = NatsStore::connect(&url).await.expect("that account has it");
    assert!(!format!("{store:?}").contains("hunter2"));
}

#[tokio::test]
async fn wrong_credentials_and_missing_rights_are_told_apart() {
    let rights = r#"
authorization {
  users: [
    { user: all, password: hunter2 }
    { user: reader, password: hunter2, permissions: {
        publish: ["$JS.API.STREAM.INFO.KV_app", "$JS.API.STREAM.MSG.GET.KV_app"], subscribe: ["_INBOX.>"] } }
    { user: least, password: hunter2, permissions: {
        publish: ["$JS.API.STREAM.INFO.KV_app", "$JS.API.STREAM.MSG.GET.KV_app", "$JS.API.CONSUMER.CREATE.KV_app.>",
          "$KV.app.lease.>"], subscribe: ["_INBOX.>"] } }
    { user: blind, password: hunter2, permissions: {
        publish: ["$JS.API.STREAM.INFO.KV_app", "$JS.API.STREAM.MSG.GET.KV_app", "$KV.app.lease.>"], subscribe: ["_INBOX.>"] } }
    { user: cleaner, password: hunter2, permissions: {
        publish: ["$JS.API.STREAM.INFO.KV_app", "$JS.API.STREAM.MSG.GET.KV_app", "$JS.API.STREAM.PURGE.KV_app"],
        subscribe: ["_INBOX.>"] } }
    { user: deaf, password: hunter2, permissions: { publish: ["$JS.API.>", "$KV.app.>"], subscribe: ["none"] } }
  ]
}
"#;
    let server = NatsServer::start(NatsOptions::default().with(rights))
        .await
        .expect("a server");
    let url = |user: &str| format!("nats://{user}@{}/app", server.address());
    for user in ["all:wrong", "nobody:hunter2", "token"] {
        let error = refused(&url(user)).await;
        assert_eq!(error.fault, Fault::Unauthenticated, "{user}: {error}");
    }
    let early = refused(&url("reader:hunter2")).await;
    assert_eq!(
        early.fault,
        Fault::Forbidden,
        "the bucket is not there, and may not be made: {early}"
    );
    drop(NatsStore::connect(&url("all:hunter2")).await.expect("may all"));

    let reader = NatsStore::connect(&url("reader:hunter2"))
        .await
        .expect("may look");
    assert_eq!(reader.get(&name("job")).await, Ok(None));
    let error = reader
        .acquire(&request("job", "a", seconds(60)))
        .await
        .expect_err("may not write");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Forbidden, Certainty::NotApplied),
        "{error}"
    );
    let least = NatsStore::connect(&url("least:hunter2")).await.expect("connects");
    let blind = NatsStore::connect(&url("blind:hunter2")).await.expect("connects");
    for (store, verdict) in [
        (&reader, Verdict::Bad),
        (&blind, Verdict::Warning),
        (&least, Verdict::Good),
    ] {
        let findings = store.examine().await.expect("it may be looked at");
        let rights = findings
            .iter()
            .find(|finding| finding.subject == "privileges")
            .expect("they are examined");
        assert_eq!(rights.verdict, verdict, "{rights:?}");
    }
    drop(
        least
            .watch(
                &tenure_core::Scope::Prefix(String::new()),
                tenure_core::Interest::Everything,
            )
            .await
            .expect("may watch"),
    );
    take(&least, &request("job", "a", seconds(60))).await;
    let cleaner = NatsStore::connect(&url("cleaner:hunter2"))
        .await
        .expect("connects");
    only_the_cleaner_cleans_up(&least, &cleaner).await;
    let error = refused(&url("deaf:hunter2")).await;
    assert_eq!(error.fault, Fault::Forbidden, "{error}");
}

#[tokio::test]
async fn token_lets_in() {
    let server = NatsServer::start(NatsOptions::default().with("authorization { token: \"hunter2/@:\" }\n"))
        .await
        .expect("a server");
    let url = |token: &str| format!("nats://{token}@{}", server.address());
    drop(
        NatsStore::connect(&url("hunter2%2F%40%3A"))
            .await
            .expect("the token is right"),
    );
    assert_eq!(refused(&url("hunter2")).await.fault, Fault::Unauthenticated);
}

#[tokio::test]
async fn traits_say_what_a_confirmed_write_of_nats_is_worth() {
    let durable = NatsServer::start(NatsOptions::durable()).await.expect("a server");
    let lagging = shared().await;
    let unheard = Scratch::on(&durable.url()).store().await;
    let durability = unheard.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("monitor=")),
        "{durability:?}"
    );
    let (durable_at, lagging_at) = (durable.monitor_address(), lagging.monitor_address());
    Scratch::on(&durable.url())
        .safe_store_with(&format!("?monitor={durable_at}"))
        .await;
    let store = Scratch::new()
        .await
        .told_with(&format!("?monitor={lagging_at}"))
        .await;
    let durability = store.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("one copy")),
        "{durability:?}"
    );
    // What the server is set to does not count where the bucket is set otherwise.
    let hasty = Scratch::on(&durable.url());
    hasty
        .beneath()
        .await
        .make(json!({ "persist_mode": "async" }))
        .await;
    let options = format!("?monitor={durable_at}");
    let durability = hasty.store_with(&options).await.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("persist_mode") && why.contains("another bucket")),
        "{durability:?}"
    );
    // Another server's word is worth nothing: the servers are told apart by their names.
    eventually_async(Duration::from_secs(60), "its word", async || {
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        let mut about = findings
            .into_iter()
            .filter(|finding| finding.subject == "durability");
        let told = about.next().expect("it is examined");
        let is_told = told.verdict == Verdict::Warning && told.detail.contains("every 120s");
        is_told.then_some(()).ok_or(format!("{told:?}"))
    })
    .await;
}

#[tokio::test]
async fn cluster_is_safe_only_if_every_copy_syncs() {
    let mut cluster = NatsCluster::start(NatsOptions::durable())
        .await
        .expect("a cluster");
    let scratch = Scratch::on(&cluster.url());
    scratch
        .safe_store_with(&format!("?monitor={}", cluster.monitor_addresses()))
        .await;
    let config = scratch.beneath().await.info().await["config"].clone();
    assert_eq!(config["num_replicas"], 3, "in a cluster, three copies are made");
    let one = cluster.servers()[0].monitor_address();
    let store = scratch.store_with(&format!("?monitor={one}")).await;
    let durability = store.traits().durability;
    assert!(
        matches!(durability, Durability::FenceOnly(why) if why.contains("monitor=")),
        "{durability:?}"
    );
}
