//! The suite that every store passes, on a quorum of five servers.

use crate::common::{connection, random_bits};
use redis::Cmd;
use redis::aio::MultiplexedConnection;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, FencingToken, LeaseName, LeasePurge, LeaseStore};
use tenure_redis::QuorumStore;
use tenure_testkit::{RedisOptions, RedisServer};
use tokio::sync::OnceCell;

async fn servers() -> &'static [RedisServer; 5] {
    static SERVERS: OnceCell<[RedisServer; 5]> = OnceCell::const_new();
    let start = || RedisServer::start(RedisOptions::default());
    let all = || async {
        let started = tokio::try_join!(start(), start(), start(), start(), start());
        let (a, b, c, d, e) = started.expect("five servers start");
        [a, b, c, d, e]
    };
    SERVERS.get_or_init(all).await
}

struct QuorumSubject {
    stores: [Arc<QuorumStore>; 2],
    prefix: String,
    connections: Vec<MultiplexedConnection>,
}

async fn fixture() -> Fixture {
    let servers = servers().await;
    let prefix = format!("test-{:016x}", random_bits());
    let hosts: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let url = format!("redis+quorum://{}?prefix={prefix}", hosts.join(","));
    let store = || async { Arc::new(QuorumStore::connect(&url).await.expect("the store connects")) };
    let mut connections = Vec::new();
    for server in servers {
        connections.push(connection(&server.url()).await);
    }
    Fixture::new(QuorumSubject {
        stores: [store().await, store().await],
        prefix,
        connections,
    })
}

impl QuorumSubject {
    fn key(&self, name: &LeaseName) -> String {
        self.key_of(name.as_str())
    }

    fn key_of(&self, text: &str) -> String {
        format!("{{{}}}:lease:{text}", self.prefix)
    }

    /// Waits until all members have what a majority was told, if they ever have: a majority is enough for an
    /// answer.
    async fn settled(&self, name: &LeaseName) {
        for _ in 0..100 {
            let mut states = Vec::new();
            for connection in &self.connections {
                let fields = [
                    "generation",
                    "incarnation",
                    "attempt",
                    "unconfirmed",
                    "releasedAt",
                ];
                let look = redis::cmd("HMGET").arg(self.key(name)).arg(&fields).to_owned();
                let read: Result<[Option<Vec<u8>>; 5], _> = look.query_async(&mut connection.clone()).await;
                // What is no hash is the same everywhere.
                let known = read.ok().map(|[token, process, attempt, unconfirmed, released]| {
                    (token, process, attempt, unconfirmed, released.is_some())
                });
                states.push(known);
            }
            if states.windows(2).all(|pair| pair[0] == pair[1]) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn query_all<T: redis::FromRedisValue>(&self, command: &Cmd) -> Vec<T> {
        let mut answers = Vec::new();
        for connection in &self.connections {
            answers.push(
                command
                    .query_async(&mut connection.clone())
                    .await
                    .expect("the test can ask"),
            );
        }
        answers
    }
}

impl Subject for QuorumSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[0]) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[1]) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let clocks: Vec<(u64, u64)> = self.query_all(&redis::cmd("TIME")).await;
            let earliest = clocks
                .iter()
                .map(|(seconds, rest)| seconds * 1000 + rest / 1000)
                .min();
            Hooked::Done(earliest.expect("five clocks"))
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            self.settled(name).await;
            let kinds: Vec<String> = self.query_all(redis::cmd("TYPE").arg(self.key(name))).await;
            if kinds.iter().all(|kind| kind == "none") {
                return Hooked::Done(None);
            }
            let mut text = String::new();
            for (kind, connection) in kinds.iter().zip(&self.connections) {
                let connection = &mut connection.clone();
                let record = if kind == "hash" {
                    let read = redis::cmd("HGETALL").arg(self.key(name)).to_owned();
                    let fields: BTreeMap<String, Vec<u8>> = read.query_async(connection).await.expect("read");
                    format!("{fields:?}")
                } else {
                    kind.clone()
                };
                text = format!("{text}{record};");
            }
            Hooked::Done(Some(text))
        })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        let key = self.key(name);
        let set = |field: &str, value: &str| redis::cmd("HSET").arg(&key).arg(field).arg(value).to_owned();
        let unset = |field: &str| redis::cmd("HDEL").arg(&key).arg(field).to_owned();
        let damage = match corruption {
            Corruption::NegativeToken => set("generation", "-7"),
            Corruption::ZeroToken => set("generation", "0"),
            Corruption::HugeToken => set("generation", "9223372036854775808"),
            Corruption::TokenBeyondTheLast => set("generation", &Corruption::BEYOND_THE_LAST.to_string()),
            Corruption::TokenIsText => set("generation", "seven"),
            Corruption::NoToken => unset("generation"),
            Corruption::HolderIsNumber => {
                return Box::pin(async { Hooked::Unsupported("a hash keeps texts: 7 is a candidate id") });
            }
            Corruption::HolderIsMalformed => set("owner", "a\u{7}b"),
            Corruption::NoHolder => unset("owner"),
            Corruption::IncarnationIsMalformed => set("incarnation", "not-an-incarnation"),
            Corruption::NegativeAttempt => set("attempt", "-1"),
            Corruption::AttemptIsText => set("attempt", "first"),
            Corruption::ExpiryIsText => set("expiresAt", "tomorrow"),
            Corruption::ExpiryFarOff => set("expiresAt", &Corruption::FAR_OFF_MS.to_string()),
            Corruption::NoExpiry => unset("expiresAt"),
            Corruption::ZeroTtl => set("ttlMs", "0"),
            Corruption::TtlIsText => set("ttlMs", "long"),
            Corruption::Alien => redis::cmd("SET").arg(&key).arg("green").to_owned(),
            Corruption::LongNote => set("note", &Corruption::long_note()),
            Corruption::LastToken => set("generation", &FencingToken::MAX.to_string()),
        };
        Box::pin(async move {
            self.settled(name).await;
            let _changed: Vec<redis::Value> = self.query_all(&damage).await;
            Hooked::Done(())
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let mut record = redis::cmd("HSET");
            record.arg(self.key_of(key)).arg("colour").arg("green");
            let _set: Vec<u64> = self.query_all(&record).await;
            let mut index = redis::cmd("ZADD");
            index.arg(format!("{{{}}}:leases", self.prefix)).arg(0).arg(key);
            let _added: Vec<u64> = self.query_all(&index).await;
            Hooked::Done(())
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            self.settled(name).await;
            let removed: Vec<u64> = self.query_all(redis::cmd("DEL").arg(self.key(name))).await;
            assert!(
                removed.iter().sum::<u64>() >= 3,
                "a case removes a record that exists"
            );
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.stores[1]) as Arc<dyn LeasePurge>)
    }
}

tenure_conformance::suite!(fixture);
