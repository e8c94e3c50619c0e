//! NATS: the bare driver reads the last record of the lease from the stream's leader and puts the next over
//! it, and gives it back by putting another over that.

use super::compare;
use async_nats::{Client, HeaderMap};
use serde_json::{Value, json};
use tenure::nats::NatsStore;
use tenure_testkit::{NatsOptions, NatsServer};

const BUCKET: &str = "KV_bare";
const KEY: &str = "$KV.bare.lease";

pub async fn measure(rounds: u32) {
    let server = NatsServer::start(NatsOptions::default())
        .await
        .expect("a NATS server");
    let store = NatsStore::connect(&server.url()).await.unwrap();
    let bare = Bare::connect(&server.url()).await;
    compare("NATS", rounds, &store, async |round| bare.turn(round).await).await;
}

pub struct Bare(Client);

impl Bare {
    pub async fn connect(url: &str) -> Self {
        let bare = Self(async_nats::connect(url).await.unwrap());
        let bucket = json!({
            "name": BUCKET, "subjects": ["$KV.bare.>"], "storage": "file", "max_msgs_per_subject": 1, "discard": "new",
        });
        bare.ask("STREAM.CREATE", &bucket).await;
        bare.put(&json!({"state": "vacant"}), 0).await;
        bare
    }

    /// A request to the stream's leader.
    async fn ask(&self, what: &str, request: &Value) -> Value {
        let subject = format!("$JS.API.{what}.{BUCKET}");
        let answer = self.0.request(subject, request.to_string().into()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        answer
    }

    async fn put(&self, record: &Value, over: u64) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", over.to_string().as_str());
        let putting = self
            .0
            .request_with_headers(KEY, headers, record.to_string().into());
        let answer: Value = serde_json::from_slice(&putting.await.unwrap().payload).unwrap();
        answer["seq"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    }

    pub async fn turn(&self, attempt: u32) {
        let last = self.ask("STREAM.MSG.GET", &json!({"last_by_subj": KEY})).await;
        let read = last["message"]["seq"].as_u64().unwrap();
        let mut record = json!({
            "state": "held", "owner": "bench", "incarnation": "7", "attempt": attempt, "token": read + 1, "ttlMs": 30_000,
        });
        let taken = self.put(&record, read).await;
        record["state"] = json!("vacant");
        self.put(&record, taken).await;
    }
}
