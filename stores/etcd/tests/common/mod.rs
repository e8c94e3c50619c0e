//! What the tests share: a prefix of their own on a shared server, and ways beneath the store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::time::Duration;
pub use tenure_conformance::asking::*;
use tenure_core::{Fault, Finding};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, eventually_async};
use tokio::sync::OnceCell;

/// The server that the tests of this process share.
pub async fn shared() -> &'static Etcd {
    static ETCD: OnceCell<Etcd> = OnceCell::const_new();
    let start = || async {
        Etcd::start(EtcdOptions::default())
            .await
            .expect("a server starts")
    };
    ETCD.get_or_init(start).await
}

/// The cluster of three that the tests of this process share: they harm none of its members.
pub async fn shared_three() -> &'static Etcd {
    static ETCD: OnceCell<Etcd> = OnceCell::const_new();
    let start = || async { Etcd::start(EtcdOptions::three()).await.expect("a cluster starts") };
    ETCD.get_or_init(start).await
}

/// A prefix that no other test has. What is under it goes with the server.
#[derive(Clone)]
pub struct Scratch {
    pub url: String,
    pub prefix: String,
}

impl Scratch {
    /// On the shared server.
    pub async fn new() -> Self {
        Self::on(&shared().await.url())
    }

    /// On the servers of this URL.
    pub fn on(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: format!("test-{:016x}", random_bits()),
        }
    }

    /// The store's URL.
    pub fn store_url(&self) -> String {
        format!("{}/{}", self.url, self.prefix)
    }

    /// At last: on a loaded machine a member may take longer than whoever connects waits.
    pub async fn store(&self) -> EtcdStore {
        let url = self.store_url();
        eventually_async(
            Duration::from_secs(60),
            "a store",
            async || match EtcdStore::connect(&url).await {
                Err(error) if error.fault == Fault::Unreachable => Err(error),
                made => Ok(made.expect("the store connects")),
            },
        )
        .await
    }

    /// A key of a lease: `""`, `"\tterm"`, `"\tholder"`, `"\twish"`.
    pub fn key(&self, name: &str, part: &str) -> String {
        format!("{}/lease/{name}{part}", self.prefix)
    }

    /// Where a clean-up notes that a lease is unused.
    pub fn note(&self, name: &str) -> String {
        format!("{}/unused/{name}", self.prefix)
    }
}

/// All keys from one on, up to but without another, as the gateway shows them.
pub fn range(etcd: &Etcd, member: usize, from: &str, end: &str) -> Vec<Value> {
    let body = json!({ "key": BASE64.encode(from), "range_end": BASE64.encode(end) });
    let answer = etcd
        .post(member, "/v3/kv/range", &body.to_string())
        .expect("the test can ask");
    let answer: Value = serde_json::from_str(&answer).expect("an answer in JSON");
    answer["kvs"].as_array().cloned().unwrap_or_default()
}

/// The value of a key.
pub fn value(etcd: &Etcd, member: usize, key: &str) -> Option<String> {
    let kvs = range(etcd, member, key, &format!("{key}\0"));
    let value = kvs.first()?["value"].as_str().unwrap_or_default().to_owned();
    let bytes = BASE64.decode(value).expect("base64");
    Some(String::from_utf8(bytes).expect("a text"))
}

pub fn put(etcd: &Etcd, member: usize, key: &str, value: &str) {
    let body = json!({ "key": BASE64.encode(key), "value": BASE64.encode(value) });
    let answer = etcd.post(member, "/v3/kv/put", &body.to_string());
    let answer = answer.expect("the test can ask");
    assert!(answer.contains("revision"), "{answer}");
}

/// Removes all keys from one on, up to but without another; how many there were.
pub fn remove(etcd: &Etcd, member: usize, from: &str, end: &str) -> u64 {
    let body = json!({ "key": BASE64.encode(from), "range_end": BASE64.encode(end) });
    let answer = etcd
        .post(member, "/v3/kv/deleterange", &body.to_string())
        .expect("the test can ask");
    let answer: Value = serde_json::from_str(&answer).expect("an answer in JSON");
    answer["deleted"]
        .as_str()
        .map_or(0, |deleted| deleted.parse().expect("a number"))
}

/// How long each frame of an answer waits while others are to do something, in one round after the other:
/// longer where the machine was too slow for that. An answer is up to five frames, and has 3 s.
pub fn pauses() -> impl Iterator<Item = Duration> {
    (1..=10).map(|round: u32| Duration::from_millis(150) * round.min(3))
}

/// What an examination finds of this.
pub fn finding<'a>(findings: &'a [Finding], subject: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.subject == subject);
    found.unwrap_or_else(|| panic!("nothing is said of {subject}: {findings:?}"))
}
