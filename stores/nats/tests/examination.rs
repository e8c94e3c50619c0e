//! What an operator is told of a bucket.

use crate::common::Scratch;
use serde_json::json;
use tenure_core::{LeaseStore, Verdict};

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
    assert_eq!(
        scratch.beneath().await.info().await["state"]["messages"],
        0,
        "nothing is left behind"
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
