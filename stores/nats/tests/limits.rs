//! What servers and accounts allow: how it is told before it does harm, and when it has.

use crate::common::{Scratch, in_time, request, seconds, take};
use serde_json::json;
use std::time::Duration;
use tenure_core::{Acquired, Certainty, Fault, Finding, Interest, LeaseStore, Scope, StoreError, Verdict};
use tenure_nats::NatsStore;
use tenure_testkit::{NatsOptions, NatsServer, eventually_async};

const PATIENCE: Duration = Duration::from_secs(60);

async fn server(jetstream: &str, settings: &str) -> NatsServer {
    let options = NatsOptions {
        jetstream: Some(jetstream.to_owned()),
        ..NatsOptions::default()
    };
    let started = NatsServer::start(options.with(settings)).await;
    started.expect("a server starts")
}

/// Settings of an account of everybody, with these limits.
fn account(limits: &str) -> String {
    format!(
        "accounts {{ A {{ jetstream: {{ {limits} }}, users: [{{ user: a, password: p }}] }} }}\nno_auth_user: a\n"
    )
}

/// What the doctor says.
async fn found(store: &NatsStore, subject: &str) -> Finding {
    let findings = eventually_async(PATIENCE, "an answer", || store.examine()).await;
    let found = findings.into_iter().find(|finding| finding.subject == subject);
    found.expect("it is examined")
}

/// It would be elected, lose the term after a ttl, and be elected again, for ever.
#[tokio::test]
async fn store_that_is_let_in_once_takes_no_lease_that_it_could_not_renew() {
    let mut server = server("", "max_connections: 1\n").await;
    let store = Scratch::on(&server.url()).store().await;
    let asked = request("job", "a", seconds(60));
    for _try in 0..3 {
        let error = store.acquire(&asked).await.expect_err("it could not renew");
        let told = (error.fault, error.certainty);
        assert_eq!(told, (Fault::Unreachable, Certainty::NotApplied), "{error}");
        assert!(error.message.contains("maximum connections"), "{error}");
    }
    server.reload("max_connections: 64\n").expect("reloaded");
    let granted = eventually_async(PATIENCE, "a term", async || match store.acquire(&asked).await {
        Ok(Acquired::Granted(grant)) => Ok(grant),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!((granted.terms, granted.again), (1, false), "nobody led before");
}

/// Used up by another stream, either refuses each renewal.
#[tokio::test]
async fn examination_tells_of_an_account_and_of_a_server_that_have_little_room() {
    for (server, told) in [
        (
            server("", &account("max_file: 300000")).await,
            "of 300000 bytes of the account are used",
        ),
        (
            server("max_file_store: 300000", "").await,
            "of 300000 bytes of JetStream's on scratch are used",
        ),
    ] {
        let scratch = Scratch::on(&server.url());
        let store = scratch
            .told_with(&format!("?monitor={}", server.monitor_address()))
            .await;
        let room = eventually_async(PATIENCE, "that it is looked at", async || {
            let room = found(&store, "room").await;
            if room.detail.contains(told) {
                Ok(room)
            } else {
                Err(room.detail)
            }
        })
        .await;
        assert_eq!(room.verdict, Verdict::Good, "{room:?}");
        let other = Scratch::on(&server.url()).beneath().await;
        other.make(json!({ "max_msgs_per_subject": -1 })).await;
        for _message in 0..5 {
            other.put("x", &[0; 50_000], &[]).await;
        }
        let room = eventually_async(PATIENCE, "a warning", async || {
            let room = found(&store, "room").await;
            if room.verdict == Verdict::Warning {
                Ok(room)
            } else {
                Err(room.detail)
            }
        })
        .await;
        let is_told = room.detail.contains(told) && room.detail.contains("all terms end");
        assert!(is_told, "{room:?}");
        // Until then all is well.
        take(&store, &request("job", "a", seconds(60))).await;
    }
}

/// A user with the least rights may not ask for it.
#[tokio::test]
async fn examination_tells_that_the_room_of_an_account_is_not_looked_at() {
    let rights = "authorization { users: [ { user: some, password: p, permissions: { publish: { deny: \"$JS.API.INFO\" } } } ] }\n\
                  no_auth_user: some\n";
    let server = server("", rights).await;
    let room = found(&Scratch::on(&server.url()).store().await, "room").await;
    let is_told = room.detail.contains("$JS.API.INFO") && room.detail.contains("monitor=");
    assert!(room.verdict == Verdict::Good && is_told, "{room:?}");
}

/// The second candidate, and all that come after, would be woken by nothing.
#[tokio::test]
async fn examination_tells_that_no_more_may_watch() {
    let (few, hasty) = (
        json!({ "max_consumers": 1 }),
        json!({ "consumer_limits": { "inactive_threshold": 1_000_000_000 } }),
    );
    for (limits, told) in [(few, "max_consumers"), (hasty, "consumer_limits")] {
        let scratch = Scratch::new().await;
        scratch.beneath().await.make(limits).await;
        let store = scratch.store().await;
        let _first = store
            .watch(&Scope::Prefix("job".to_owned()), Interest::Everything)
            .await;
        let rights = found(&store, "privileges").await;
        let is_told = rights.detail.contains("nobody is woken") && rights.detail.contains(told);
        let has_repair = rights.repair.is_some();
        assert!(
            rights.verdict == Verdict::Warning && is_told && has_repair,
            "{rights:?}"
        );
    }
}

/// Only a person can mend it, and nothing was made.
#[tokio::test]
async fn bucket_that_may_not_be_made_is_told_with_the_way_out() {
    for (server, options, way_out) in [
        (server("", "").await, "?replicas=3", "replicas=1"),
        (
            server("", &account("max_bytes_required: true, max_file: 10000000")).await,
            "",
            "--max-bytes",
        ),
        (
            server("", &account("max_streams: 1")).await,
            "",
            "remove a stream",
        ),
    ] {
        Scratch::on(&server.url())
            .beneath()
            .await
            .make(json!({ "max_bytes": 1_000_000 }))
            .await;
        let url = format!("{}{options}", Scratch::on(&server.url()).store_url());
        let error: StoreError = in_time("a refusal", async || match NatsStore::connect(&url).await {
            Err(error) if error.fault == Fault::Unsupported => Ok(error),
            other => other.map(|_store| panic!("{way_out}: it was made")),
        })
        .await;
        assert!(error.message.contains(way_out), "{error}");
        assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
    }
}
