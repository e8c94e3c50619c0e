//! What the tests share: a bucket of their own on a shared server, and ways beneath the store.

use async_nats::{Client, HeaderMap, RequestErrorKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Durability, Fault, FencingToken, Grant, Incarnation,
    LeaseName, LeaseStore, Note, Release, Renew, StoreError, Ttl,
};
use tenure_nats::NatsStore;
use tenure_testkit::{NatsCluster, NatsOptions, NatsServer, eventually_async};
use tokio::sync::OnceCell;

/// The server that the tests of this process share.
pub async fn shared() -> &'static NatsServer {
    static SERVER: OnceCell<NatsServer> = OnceCell::const_new();
    let start = || async {
        NatsServer::start(NatsOptions::default())
            .await
            .expect("a server starts")
    };
    SERVER.get_or_init(start).await
}

/// The cluster of three that the tests of this process share: they harm none of its servers. Its bucket
/// `shared` is there, and its copies have elected their leader, which takes them seconds.
pub async fn shared_cluster() -> &'static NatsCluster {
    static CLUSTER: OnceCell<NatsCluster> = OnceCell::const_new();
    let start = || async {
        let cluster = NatsCluster::start(NatsOptions::default())
            .await
            .expect("a cluster starts");
        until_it_takes_writes(&Scratch::shared_on(&cluster).store().await).await;
        cluster
    };
    CLUSTER.get_or_init(start).await
}

/// On a loaded machine the copies of a new bucket may lose the leader that they have elected first, and have
/// none for seconds.
async fn until_it_takes_writes(store: &NatsStore) {
    for attempt in 1..=3 {
        let asked = Acquire {
            attempt: Attempt::new(attempt).expect("attempts are few"),
            ..request("warming-up", "the tests", seconds(60))
        };
        eventually_async(Duration::from_secs(60), "a bucket that takes writes", || async {
            matches!(store.acquire(&asked).await, Ok(Acquired::Granted(_)))
        })
        .await;
        let token = take(store, &asked).await.token;
        let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
        assert!(released.is_ok(), "{released:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A bucket that no other test has. It goes with the server.
pub struct Scratch {
    pub url: String,
    pub bucket: String,
}

impl Scratch {
    /// On the shared server.
    pub async fn new() -> Self {
        Self::on(&shared().await.url())
    }

    /// On the servers of this URL, which has no bucket.
    pub fn on(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            bucket: format!("test-{:016x}", random_bits()),
        }
    }

    /// The bucket that all cases on the shared cluster use.
    pub fn shared_on(cluster: &NatsCluster) -> Self {
        Self {
            url: cluster.url(),
            bucket: "shared".to_owned(),
        }
    }

    /// The store's URL.
    pub fn store_url(&self) -> String {
        format!("{}/{}", self.url, self.bucket)
    }

    pub async fn store(&self) -> NatsStore {
        self.store_with("").await
    }

    /// With these options, as `?replicas=1`.
    pub async fn store_with(&self, options: &str) -> NatsStore {
        let url = format!("{}{options}", self.store_url());
        in_time("a store", || NatsStore::connect(&url)).await
    }

    /// The same, of servers that sync always and tell so where these options say.
    pub async fn safe_store_with(&self, options: &str) -> NatsStore {
        let store = self.told_with(options).await;
        assert_eq!(store.traits().durability, Durability::Safe);
        store
    }

    /// The same, of servers that tell what they are set to where these options say: on a loaded machine one
    /// may take longer to tell than whoever connects waits.
    pub async fn told_with(&self, options: &str) -> NatsStore {
        eventually_async(
            Duration::from_secs(60),
            "a store of servers that tell",
            async || {
                let store = self.store_with(options).await;
                match store.traits().durability {
                    Durability::FenceOnly(why) if why.contains("do not tell") => Err(why),
                    Durability::Safe | Durability::FenceOnly(_) => Ok(store),
                }
            },
        )
        .await
    }

    pub async fn beneath(&self) -> Beneath {
        Beneath::connect(&self.url, &self.bucket).await
    }

    pub fn stream(&self) -> String {
        format!("KV_{}", self.bucket)
    }
}

/// What is made at last: on a loaded machine a server may take longer than whoever connects waits, and the
/// copies of a new bucket may be without a leader for seconds. Whatever else is told is no matter of time.
pub async fn in_time<T>(what: &str, mut make: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    let until = Instant::now() + ASK_TIME_MAX;
    loop {
        match make().await {
            Ok(made) => return made,
            Err(error) => {
                let passes = matches!(error.fault, Fault::Unreachable | Fault::TimedOut | Fault::Busy);
                assert!(passes && Instant::now() < until, "{what}: {error}");
            }
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// A client of the test's own.
pub struct Beneath {
    client: Client,
    bucket: String,
}

/// How long to ask again: a cluster on a busy machine changes its leaders, and has none for a moment.
const ASK_TIME_MAX: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// What JetStream refuses with while it has no server to put a stream on.
const NO_PEERS: u64 = 10_005;
/// The class of what it refuses with while it has no leader.
const UNAVAILABLE: u64 = 503;

impl Beneath {
    pub async fn connect(url: &str, bucket: &str) -> Self {
        let addresses: Vec<async_nats::ServerAddr> = url
            .trim_start_matches("nats://")
            .split(',')
            .map(|address| address.parse().expect("an address"))
            .collect();
        Self {
            client: async_nats::connect(addresses)
                .await
                .expect("the test can connect"),
            bucket: bucket.to_owned(),
        }
    }

    pub fn subject(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.bucket)
    }

    /// A call of JetStream's, whose answer may be an error.
    pub async fn call(&self, api: &str, request: Value) -> Value {
        let payload = if request.is_null() {
            String::new()
        } else {
            request.to_string()
        };
        self.ask(format!("$JS.API.{api}"), HeaderMap::new(), payload.into_bytes())
            .await
    }

    /// Asks until there is an answer: what is asked for here may be asked for twice.
    async fn ask(&self, subject: String, headers: HeaderMap, payload: Vec<u8>) -> Value {
        let until = Instant::now() + ASK_TIME_MAX;
        loop {
            let asking =
                self.client
                    .request_with_headers(subject.clone(), headers.clone(), payload.clone().into());
            let passes = [RequestErrorKind::TimedOut, RequestErrorKind::NoResponders];
            match asking.await {
                Ok(answer) => return serde_json::from_slice(&answer.payload).expect("JSON"),
                Err(error) if passes.contains(&error.kind()) && Instant::now() < until => {
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                Err(error) => panic!("NATS answers: {error}"),
            }
        }
    }

    pub async fn make(&self, config: Value) -> Value {
        let mut whole = json!({
            "name": format!("KV_{}", self.bucket),
            "subjects": [format!("$KV.{}.>", self.bucket)],
            "max_msgs_per_subject": 1,
            "discard": "new",
            "storage": "file",
            "allow_rollup_hdrs": true,
        });
        for (key, value) in config.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        let create = format!("STREAM.CREATE.KV_{}", self.bucket);
        let until = Instant::now() + ASK_TIME_MAX;
        loop {
            let made = self.call(&create, whole.clone()).await;
            let Some(error) = made.get("error") else {
                return made;
            };
            // The servers of a cluster that has just started do not know yet of each other that they are
            // there.
            let starts = error["err_code"] == NO_PEERS || error["code"] == UNAVAILABLE;
            assert!(starts && Instant::now() < until, "{made}");
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Edits it, as `nats stream edit` does.
    pub async fn edit(&self, changes: &Value) {
        let mut config = self.info().await["config"].clone();
        for (key, value) in changes.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let api = format!("STREAM.UPDATE.KV_{}", self.bucket);
        let edited = self.call(&api, config).await;
        assert_eq!(edited.get("error"), None, "{edited}");
    }

    pub async fn info(&self) -> Value {
        self.call(&format!("STREAM.INFO.KV_{}", self.bucket), Value::Null)
            .await
    }

    /// The last message of a key: its number and its value, in whatever form.
    pub async fn last(&self, key: &str) -> Option<(u64, Vec<u8>)> {
        let request = json!({ "last_by_subj": self.subject(key) });
        let answer = self
            .call(&format!("STREAM.MSG.GET.KV_{}", self.bucket), request)
            .await;
        let message = answer.get("message")?;
        let value = message["data"].as_str().unwrap_or_default();
        let value = STANDARD.decode(value).expect("base64");
        Some((message["seq"].as_u64().expect("a number"), value))
    }

    /// Stores a value, whatever was there.
    pub async fn put(&self, key: &str, value: &[u8], headers: &[(&str, &str)]) -> Value {
        let mut map = HeaderMap::new();
        for (name, text) in headers {
            map.insert(*name, *text);
        }
        self.ask(self.subject(key), map, value.to_vec()).await
    }

    /// Has a value be stored, and waits for no answer.
    pub async fn publish(&self, key: &str, value: &[u8]) {
        let published = self.client.publish(self.subject(key), value.to_vec().into());
        published.await.expect("the connection lives");
    }

    /// Has everything be sent that was published.
    pub async fn flush(&self) {
        self.client.flush().await.expect("the connection lives");
    }
}

/// The key of a name, as the README says.
pub fn key(name: &str) -> String {
    let mut key = "lease.".to_owned();
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' | b'/' => key.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => key.push(char::from(byte)),
            _ => key.push_str(&format!("={byte:02X}")),
        }
    }
    key
}

pub fn random_bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub fn name(text: &str) -> LeaseName {
    LeaseName::new(text).expect("a test gives a valid name")
}

pub fn seconds(seconds: u64) -> Ttl {
    Ttl::from_secs(seconds).expect("a test gives a valid ttl")
}

/// A new process that asks by its first attempt.
pub fn request(lease: &str, label: &str, ttl: Ttl) -> Acquire {
    let bits = (u128::from(random_bits()) << 64) | u128::from(random_bits());
    Acquire {
        name: name(lease),
        candidate: Candidate {
            id: CandidateId::new(label).expect("a test gives a valid id"),
            incarnation: Incarnation::from_bits(bits),
        },
        attempt: Attempt::FIRST,
        ttl,
        note: Note::default(),
    }
}

pub fn renewal(request: &Acquire, token: FencingToken) -> Renew {
    Renew {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
        ttl: request.ttl,
    }
}

pub fn giving_back(request: &Acquire, token: FencingToken) -> Release {
    Release {
        name: request.name.clone(),
        incarnation: request.candidate.incarnation,
        token,
        attempt: request.attempt,
    }
}

pub fn granted(answer: Acquired) -> Grant {
    match answer {
        Acquired::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

pub async fn take(store: &dyn LeaseStore, request: &Acquire) -> Grant {
    granted(store.acquire(request).await.expect("the store answers"))
}
