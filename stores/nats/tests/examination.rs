//! What an operator is told of a bucket.

use crate::common::{Scratch, granted, renewal, request, seconds, shared, shared_cluster};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::{Certainty, Durability, Fault, LeaseStore, Verdict};
use tenure_testkit::{FaultProxy, RequestFault, eventually_async};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

#[tokio::test]
async fn examination_of_nats_tells_what_matters() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let findings = store.examine().await.expect("it answers");
    let subjects: Vec<&str> = findings.iter().map(|finding| finding.subject.as_str()).collect();
    assert_eq!(
        subjects,
        [
            "round trip",
            "clock",
            "bucket",
            "copies",
            "numbers",
            "durability",
            "room",
            "privileges",
            "observed time"
        ]
    );
    assert!(
        findings.iter().all(|finding| finding.verdict != Verdict::Bad),
        "{findings:?}"
    );
    let info = scratch.beneath().await.info().await;
    assert_eq!(info["state"]["messages"], 0, "nothing is left behind");
    // Whoever is told of another bucket of this name is told when that was made.
    let made = info["created"].as_str().expect("a time");
    let copies = findings.iter().find(|finding| finding.subject == "copies");
    assert!(
        copies.is_some_and(|copies| copies.detail.contains(made)),
        "{made}: {copies:?}"
    );
}

/// A server that goes down just then says nothing of the rights.
#[tokio::test]
async fn examination_takes_no_lost_answer_for_a_lack_of_rights() {
    let proxy = FaultProxy::nats(shared().await.address()).expect("a proxy");
    let scratch = Scratch::on(&format!("nats://{}", proxy.address()));
    let store = scratch.store().await;
    proxy.next_commands(1, "PUB", RequestFault::CutBefore);
    let findings = store.examine().await.expect("it answers");
    assert_eq!(proxy.counts().cut_before, 1, "the fault happened");
    let rights = findings.iter().find(|finding| finding.subject == "privileges");
    let rights = rights.expect("they are examined");
    assert!(
        rights.verdict == Verdict::Warning && rights.repair.is_none(),
        "{rights:?}"
    );
}

/// A bucket that refuses new names for their number is as full as one that refuses them for their size.
#[tokio::test]
async fn examination_tells_of_a_bucket_that_takes_few_more_names() {
    for (limit, told) in [
        (json!({ "max_msgs": 1 }), "1 of 1 messages"),
        (json!({ "max_bytes": 80 }), "of 80 bytes"),
        (
            json!({ "max_msgs": 1, "max_bytes": 1_000_000 }),
            "1 of 1 messages",
        ),
    ] {
        let scratch = Scratch::new().await;
        scratch.beneath().await.make(limit.clone()).await;
        let store = scratch.store().await;
        scratch.beneath().await.put("x", &[0; 20], &[]).await;
        let findings = store.examine().await.expect("it answers");
        let room = findings
            .iter()
            .find(|finding| finding.subject == "room")
            .expect("it is examined");
        assert!(
            room.verdict == Verdict::Warning && room.detail.contains(told),
            "{limit}: {room:?}"
        );
    }
}

#[tokio::test]
async fn examination_tells_how_many_revisions_are_kept() {
    for (history, told) in [
        (5, "5 revisions of each record"),
        (-1, "all revisions of each record"),
    ] {
        let scratch = Scratch::new().await;
        let made = json!({ "max_msgs_per_subject": history });
        scratch.beneath().await.make(made).await;
        let findings = scratch.store().await.examine().await.expect("it answers");
        let copies = findings.iter().find(|finding| finding.subject == "copies");
        let copies = copies.expect("it is examined");
        assert!(
            copies.verdict == Verdict::Warning && copies.detail.contains(told),
            "{copies:?}"
        );
    }
}

/// Of several copies, a full bucket refuses also what would only replace a record.
#[tokio::test]
async fn examination_tells_that_a_full_bucket_of_several_copies_renews_nothing() {
    let scratch = Scratch::on(&shared_cluster().await.url());
    let made = json!({ "max_msgs": 1, "num_replicas": 3 });
    scratch.beneath().await.make(made).await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(300));
    let grant = eventually_async(Duration::from_secs(60), "a term", || async {
        store.acquire(&asked).await.map(granted)
    })
    .await;
    let certainty = eventually_async(Duration::from_secs(60), "a refusal", || async {
        let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
        match renewed {
            Err(error) if error.fault == Fault::Full => Ok(error.certainty),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(certainty, Certainty::NotApplied);
    let findings = eventually_async(Duration::from_secs(60), "an answer", || store.examine()).await;
    let room = findings.iter().find(|finding| finding.subject == "room");
    let room = room.expect("it is examined");
    assert!(
        room.verdict == Verdict::Warning && room.detail.contains("grants and renews nothing"),
        "{room:?}"
    );
}

/// Of two both are the majority.
#[tokio::test]
async fn examination_tells_that_two_copies_survive_no_loss() {
    let scratch = Scratch::on(&shared_cluster().await.url());
    let beneath = scratch.beneath().await;
    beneath.make(json!({ "num_replicas": 2 })).await;
    let store = scratch.store().await;
    // Until the second has caught up, that is told.
    let copies = eventually_async(Duration::from_secs(60), "copies that are complete", || async {
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        let copies = findings.into_iter().find(|finding| finding.subject == "copies");
        let copies = copies.expect("it is examined");
        match copies.detail.contains("behind") {
            true => Err(copies.detail),
            false => Ok(copies),
        }
    })
    .await;
    assert_eq!(copies.verdict, Verdict::Warning, "{copies:?}");
    assert!(copies.detail.contains("while one of them is down"), "{copies:?}");
}

/// Below `/tmp` is also the servers' own default folder, where their configuration names none.
#[tokio::test]
async fn bucket_in_a_folder_that_systems_empty_is_for_the_fence_alone() {
    let scratch = Scratch::new().await;
    for (folder, is_kept) in [
        ("/tmp/nats/jetstream", false),
        ("/tmp/somebodys/choice/jetstream", false),
        ("/var/tmp/jetstream", false),
        ("/dev/shm/nats/jetstream", false),
        ("/run/nats/jetstream", false),
        ("/var/lib/nats/jetstream", true),
    ] {
        let config = json!({ "sync_always": true, "store_dir": folder });
        let told =
            json!({ "server_name": "scratch", "version": "2.15.0", "jetstream": { "config": config } });
        let options = format!("?monitor={}", monitor_that_tells(told).await);
        match scratch.told_with(&options).await.traits().durability {
            Durability::Safe => assert!(is_kept, "{folder}"),
            Durability::FenceOnly(why) => assert!(!is_kept && why.contains("store_dir"), "{folder}: {why}"),
        }
    }
}

/// Two of three that sync are a majority, but not the one that is left when the others' machines have
/// crashed.
#[tokio::test]
async fn one_copy_that_would_lose_what_it_confirmed_makes_a_bucket_for_the_fence_alone_whichever_it_is() {
    let scratch = Scratch::on(&shared_cluster().await.url());
    drop(scratch.store().await);
    let cluster = scratch.beneath().await.info().await["cluster"].clone();
    let mut servers = vec![cluster["leader"].clone()];
    let others = cluster["replicas"].as_array().expect("the other copies");
    servers.extend(others.iter().map(|other| other["name"].clone()));
    assert_eq!(servers.len(), 3, "{cluster}");
    let folder = "/var/lib/nats/jetstream";
    let sound = json!({ "sync_always": true, "store_dir": folder });
    let telling = async |odd: usize, version: &str, config: &Value| {
        let mut monitors = Vec::new();
        for (place, server) in servers.iter().enumerate() {
            let (version, config) = match odd == place {
                true => (version, config),
                false => ("2.15.0", &sound),
            };
            let told =
                json!({ "server_name": server, "version": version, "jetstream": { "config": config } });
            monitors.push(monitor_that_tells(told).await);
        }
        format!("?monitor={}", monitors.join(","))
    };
    for (version, config, reason) in [
        (
            "2.15.0",
            json!({ "sync_interval": 120_000_000_000_u64, "store_dir": folder }),
            "not \"always\" on every server",
        ),
        (
            "2.15.0",
            json!({ "sync_always": true, "store_dir": "/dev/shm/nats/jetstream" }),
            "store_dir",
        ),
        ("2.11.1", sound.clone(), "older than NATS 2.11.2"),
        ("2.11.17", sound.clone(), "2.12.12"),
        ("2.12.11", sound.clone(), "2.12.12"),
        ("2.13.0", sound.clone(), "2.12.12"),
        ("2.14.2", sound.clone(), "2.14.3"),
        ("", sound.clone(), "do not tell"),
        ("dev", sound.clone(), "do not tell"),
        ("2.15.0", json!({ "store_dir": folder }), "do not tell"),
    ] {
        for odd in 0..servers.len() {
            let options = telling(odd, version, &config).await;
            // On a loaded machine one may take longer to tell than whoever connects waits: that is no copy
            // that tells.
            eventually_async(Duration::from_secs(60), reason, || async {
                match scratch.store_with(&options).await.traits().durability {
                    Durability::FenceOnly(why) if why.contains(reason) => Ok(()),
                    Durability::FenceOnly(why) if why.contains("do not tell") => Err(why),
                    wrong => panic!("copy {odd} of {version} with {config}: {wrong:?}"),
                }
            })
            .await;
        }
    }
    for version in ["2.12.12", "2.14.3"] {
        let options = telling(0, version, &sound).await;
        drop(scratch.safe_store_with(&options).await);
    }
}

/// The address of one that answers for as long as the test runs.
async fn monitor_that_tells(told: Value) -> String {
    let monitor = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = monitor.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut asked, _)) = monitor.accept().await {
            // What is closed with something unread is reset, and the answer lost with it.
            drop(asked.read(&mut [0; 1_024]).await);
            let answer = format!("HTTP/1.0 200 OK\r\n\r\n{told}");
            drop(asked.write_all(answer.as_bytes()).await);
        }
    });
    address
}
