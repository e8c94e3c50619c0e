//! The suite that every store passes, on Redis, on Valkey, and on a Redis Cluster.

use crate::common::{Scratch, shared};
use redis::Cmd;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::time::Duration;
use tenure_conformance::{Corruption, Fixture, Hooked, Subject};
use tenure_core::{Answer, FencingToken, LeaseName, LeasePurge, LeaseStore};
use tenure_redis::RedisStore;
use tenure_testkit::{RedisBuild, RedisCluster};
use tokio::sync::OnceCell;

struct RedisSubject {
    stores: [Arc<RedisStore>; 2],
    scratch: Scratch,
    connection: MultiplexedConnection,
}

async fn fixture_on(build: RedisBuild) -> Fixture {
    let scratch = Scratch::on(&shared(build).await.url());
    Fixture::new(RedisSubject {
        stores: [Arc::new(scratch.store().await), Arc::new(scratch.store().await)],
        connection: scratch.connection().await,
        scratch,
    })
}

/// On the cluster that the tests of this process share; what the suite does beneath the store it does at the
/// member that has the slot.
async fn fixture_on_a_cluster() -> Fixture {
    /// No stall of the machine is as long: a fail-over that nobody asked for could lose what a case has
    /// written.
    const SILENCE: Duration = Duration::from_secs(600);
    static CLUSTER: OnceCell<RedisCluster> = OnceCell::const_new();
    let start = || async {
        let cluster = RedisCluster::start_with(RedisBuild::Redis, SILENCE).await;
        cluster.expect("a cluster starts")
    };
    let cluster = CLUSTER.get_or_init(start).await;
    let everywhere = Scratch::on(&cluster.url());
    for member in cluster.members() {
        let scratch = Scratch {
            url: member.url(),
            prefix: everywhere.prefix.clone(),
        };
        let connection = scratch.connection().await;
        let look = redis::cmd("HGET").arg(scratch.key("any")).arg("owner").to_owned();
        let answer: Result<Option<String>, _> = look.query_async(&mut connection.clone()).await;
        // Another has the slot, or this is a replica.
        if answer.is_err() {
            continue;
        }
        return Fixture::new(RedisSubject {
            stores: [
                Arc::new(everywhere.store().await),
                Arc::new(everywhere.store().await),
            ],
            connection,
            scratch,
        });
    }
    panic!("no member has the slot")
}

impl RedisSubject {
    async fn query<T: redis::FromRedisValue>(&self, command: &Cmd) -> T {
        command
            .query_async(&mut self.connection.clone())
            .await
            .expect("the test can ask")
    }
}

impl Subject for RedisSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[0]) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.stores[1]) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            let (seconds, microseconds): (u64, u64) = self.query(&redis::cmd("TIME")).await;
            Hooked::Done(seconds * 1000 + microseconds / 1000)
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        Box::pin(async {
            let key = self.scratch.key(name.as_str());
            let kind: String = self.query(redis::cmd("TYPE").arg(&key)).await;
            Hooked::Done(match kind.as_str() {
                "none" => None,
                "hash" => Some(format!("{:?}", self.scratch.raw(name.as_str()).await)),
                other => Some(format!(
                    "{other} {:?}",
                    self.query::<Vec<u8>>(redis::cmd("DUMP").arg(&key)).await
                )),
            })
        })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        let key = self.scratch.key(name.as_str());
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
            let _changed: redis::Value = self.query(&damage).await;
            Hooked::Done(())
        })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        Box::pin(async move {
            let mut record = redis::cmd("HSET");
            record.arg(self.scratch.key(key)).arg("colour").arg("green");
            let _set: u64 = self.query(&record).await;
            let mut index = redis::cmd("ZADD");
            index
                .arg(format!("{{{}}}:leases", self.scratch.prefix))
                .arg(0)
                .arg(key);
            let _added: u64 = self.query(&index).await;
            Hooked::Done(())
        })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        Box::pin(async {
            let removed: u64 = self
                .query(redis::cmd("DEL").arg(self.scratch.key(name.as_str())))
                .await;
            assert_eq!(removed, 1, "a case removes a record that exists");
            Hooked::Done(())
        })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.stores[0]) as Arc<dyn LeasePurge>)
    }
}

mod on_redis {
    use super::{Fixture, RedisBuild, fixture_on};

    async fn fixture() -> Fixture {
        fixture_on(RedisBuild::Redis).await
    }

    tenure_conformance::suite!(fixture);
}

mod on_valkey {
    use super::{Fixture, RedisBuild, fixture_on};

    async fn fixture() -> Fixture {
        fixture_on(RedisBuild::Valkey).await
    }

    tenure_conformance::suite!(fixture);
}

mod on_a_cluster {
    use super::{Fixture, fixture_on_a_cluster};

    async fn fixture() -> Fixture {
        fixture_on_a_cluster().await
    }

    tenure_conformance::suite!(fixture);
}
