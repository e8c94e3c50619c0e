//! What the tests share: a prefix of their own on a shared server, and ways beneath the store.

pub mod guess;
mod three;
mod ways;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
pub use tenure_conformance::asking::*;
use tenure_core::{Acquire, Acquired, FencingToken, Grant, Lease, LeaseStore};
use tenure_redis::{QuorumStore, RedisStore};
use tenure_testkit::{FaultProxy, RedisBuild, RedisOptions, RedisServer, eventually_async};
pub use three::{Record, Three};
use tokio::sync::OnceCell;
pub use ways::{BOUND, Detours, behind_proxies, hosts, quorum_at, record_in, recorded_at, two_at};

/// The durable server of a build that the tests of this process share.
pub async fn shared(build: RedisBuild) -> &'static RedisServer {
    static REDIS: OnceCell<RedisServer> = OnceCell::const_new();
    static VALKEY: OnceCell<RedisServer> = OnceCell::const_new();
    let cell = match build {
        RedisBuild::Redis => &REDIS,
        RedisBuild::Valkey => &VALKEY,
    };
    let start = || async {
        RedisServer::start(RedisOptions::durable().of(build))
            .await
            .expect("a server starts")
    };
    cell.get_or_init(start).await
}

/// A prefix that no other test has. What is under it goes with the server.
pub struct Scratch {
    pub url: String,
    pub prefix: String,
}

impl Scratch {
    /// On the shared Redis.
    pub async fn new() -> Self {
        Self::on(&shared(RedisBuild::Redis).await.url())
    }

    /// On the server of this URL.
    pub fn on(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: format!("test-{:016x}", random_bits()),
        }
    }

    /// The store's URL.
    pub fn store_url(&self) -> String {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}prefix={}", self.url, self.prefix)
    }

    pub async fn store(&self) -> RedisStore {
        RedisStore::connect(&self.store_url())
            .await
            .expect("the store connects")
    }

    /// A connection of the test's own.
    pub async fn connection(&self) -> MultiplexedConnection {
        connection(&self.url).await
    }

    /// The key of a record.
    pub fn key(&self, name: &str) -> String {
        format!("{{{}}}:lease:{name}", self.prefix)
    }

    /// The whole record as the server keeps it.
    pub async fn raw(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let mut connection = self.connection().await;
        let read = redis::cmd("HGETALL").arg(self.key(name)).to_owned();
        read.query_async(&mut connection)
            .await
            .expect("the test can read")
    }
}

/// A proxy in front of the shared server, and a store behind it whose scripts the server knows.
pub async fn proxied() -> (FaultProxy, Scratch, RedisStore) {
    let server = shared(RedisBuild::Redis).await;
    let proxy = FaultProxy::redis(server.address()).expect("a proxy");
    let scratch = Scratch::on(&format!("redis://{}", proxy.address()));
    let store = scratch.store().await;
    warm_up(&store).await;
    (proxy, scratch, store)
}

/// How long a test waits for an answer of its own.
const TEST_TIME_MAX: Duration = Duration::from_secs(30);

/// A connection of the test's own.
pub async fn connection(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a URL");
    // The driver's own are a second and less, for which a loaded machine may stand still.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(TEST_TIME_MAX))
        .set_response_timeout(Some(TEST_TIME_MAX));
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .expect("the test can connect")
}

/// Why there is no store at this URL: in one line, and without the password that all tests have.
pub async fn refused(url: &str) -> tenure_core::StoreError {
    let error = RedisStore::connect(url).await.expect_err("refused");
    assert!(
        !error.message.contains("hunter2") && !error.message.contains('\n'),
        "{error}"
    );
    error
}

/// Waits until every member of a quorum has this term of the lease "job". A majority is enough for a grant,
/// and what the test writes into a member that is late would be mixed with it.
pub async fn in_every_member(servers: &[RedisServer], token: FencingToken) {
    in_each(servers.iter().map(RedisServer::url), "job", token).await;
}

/// The same of another lease, in the servers of these URLs.
pub async fn in_each(urls: impl IntoIterator<Item = String>, lease: &str, token: FencingToken) {
    let has_it = |record: &Record| {
        record.get("generation") == Some(&token.to_string()) && !record.contains_key("unconfirmed")
    };
    in_each_comes(urls, lease, has_it).await;
}

/// Waits until each of these servers has heard that the lease was given back: a majority is enough for an
/// answer.
pub async fn given_back_in_each(urls: impl IntoIterator<Item = String>, lease: &str) {
    in_each_comes(urls, lease, |record| record.contains_key("releasedAt")).await;
}

/// Waits until the record of the lease is such a one in each of these servers.
async fn in_each_comes(
    urls: impl IntoIterator<Item = String>,
    lease: &str,
    is_wanted: impl Fn(&Record) -> bool,
) {
    for url in urls {
        let look = redis::cmd("HGETALL")
            .arg(format!("{{tenure}}:lease:{lease}"))
            .to_owned();
        let mut member = connection(&url).await;
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let record: Record = look.query_async(&mut member).await.expect("the test can ask");
            if is_wanted(&record) {
                break;
            }
            assert!(Instant::now() < limit, "a member has {record:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// What a quorum grants of which a bare majority is there: on a machine that stalls one of them may be late.
pub async fn take_in_time(store: &QuorumStore, asked: &Acquire) -> Grant {
    let asking = async || store.acquire(asked).await.map(granted);
    eventually_async(BOUND, "a term", asking).await
}

/// Whoever has the lease, as a quorum tells a rival of which a bare majority is there.
pub async fn told_held(store: &QuorumStore, rival: &Acquire) -> Lease {
    let told = eventually_async(BOUND, "an answer", async || store.acquire(rival).await).await;
    match told {
        Acquired::Held(lease) => lease,
        told => panic!("two hold it: {told:?}"),
    }
}

/// The servers of a quorum of three.
pub async fn three_servers() -> Vec<RedisServer> {
    servers(3, RedisOptions::default()).await
}

/// So many servers.
pub async fn servers(count: usize, options: RedisOptions) -> Vec<RedisServer> {
    let mut servers = Vec::new();
    for _ in 0..count {
        let server = RedisServer::start(options.clone()).await;
        servers.push(server.expect("a server"));
    }
    servers
}

/// The store of a quorum that reaches one of its members through the proxy.
pub async fn quorum_through_a_proxy(servers: &[RedisServer], member: usize) -> (FaultProxy, QuorumStore) {
    let proxy = FaultProxy::redis(servers[member].address()).expect("a proxy");
    let mut hosts = hosts(servers);
    hosts[member] = proxy.address().to_string();
    let store = recorded_at(&hosts).await;
    (proxy, store)
}

/// A time that no test sees, as a record has it. No expiry is more than a day away.
pub fn in_an_hour() -> String {
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
    (now + Duration::from_secs(3_600)).as_millis().to_string()
}
