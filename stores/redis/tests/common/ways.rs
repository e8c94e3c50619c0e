//! Servers of a quorum, and the ways to them.

use super::{Record, connection};
use std::time::Duration;
use tenure_core::{Acquire, Acquired, LeaseStore};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, FaultProxy, RedisServer, eventually_async};

/// How long something is waited for, on a loaded machine. The ttl is longer.
pub const BOUND: Duration = Duration::from_secs(60);

/// How long a request is under way to a member that hears of another one meanwhile. One member is waited for
/// longer.
const DETOUR: Duration = Duration::from_millis(700);

pub async fn quorum_at(hosts: &[String]) -> QuorumStore {
    let url = format!("redis+quorum://{}", hosts.join(","));
    eventually_async(BOUND, "a quorum", || QuorumStore::connect(&url)).await
}

/// The same, whose members know each other, as of one by which somebody has led before. All of them are up.
pub async fn recorded_at(hosts: &[String]) -> QuorumStore {
    let url = format!("redis+quorum://{}", hosts.join(","));
    eventually_async(BOUND, "members that know each other", || QuorumStore::init(&url)).await;
    quorum_at(hosts).await
}

/// Two processes' stores over the same members.
pub async fn two_at(servers: &[RedisServer]) -> (QuorumStore, QuorumStore) {
    (
        recorded_at(&hosts(servers)).await,
        quorum_at(&hosts(servers)).await,
    )
}

pub fn hosts(servers: &[RedisServer]) -> Vec<String> {
    servers.iter().map(RedisServer::address).collect()
}

/// The record of a lease as a member has it.
pub async fn record_in(server: &RedisServer, lease: &str) -> Record {
    let look = redis::cmd("HGETALL")
        .arg(format!("{{tenure}}:lease:{lease}"))
        .to_owned();
    let mut member = connection(&server.url()).await;
    look.query_async(&mut member).await.expect("the test can ask")
}

/// A proxy for each, and a store that has no other way.
pub async fn behind_proxies(servers: &[RedisServer]) -> (Vec<FaultProxy>, QuorumStore) {
    let proxies: Vec<FaultProxy> = servers
        .iter()
        .map(|server| FaultProxy::redis(server.address()).expect("a proxy"))
        .collect();
    let through: Vec<String> = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
    let store = quorum_at(&through).await;
    (proxies, store)
}

/// Two stores, each of which reaches another one of the first two servers by a detour.
pub struct Detours {
    pub stores: [QuorumStore; 2],
    detours: [FaultProxy; 2],
}

impl Detours {
    pub async fn to(servers: &[RedisServer]) -> Self {
        let detours =
            [&servers[1], &servers[0]].map(|server| FaultProxy::redis(server.address()).expect("a proxy"));
        let mut ways = [hosts(servers), hosts(servers)];
        ways[0][1] = detours[0].address().to_string();
        ways[1][0] = detours[1].address().to_string();
        let stores = [quorum_at(&ways[0]).await, quorum_at(&ways[1]).await];
        Self { stores, detours }
    }

    /// What each was told that asked at the same time, each first at the member to which it has no detour:
    /// there `is_first` is so of its request before the other's comes. Nothing where that was not, on this
    /// machine.
    pub async fn ask_at_once(
        &self,
        servers: &[RedisServer],
        asked: &[Acquire; 2],
        is_first: impl AsyncFn(&RedisServer, &Acquire) -> bool,
    ) -> Option<[Acquired; 2]> {
        for detour in &self.detours {
            detour.set(Fault::Delay {
                to_server: DETOUR,
                to_client: Duration::ZERO,
            });
        }
        let seen = async {
            while !(is_first(&servers[0], &asked[0]).await && is_first(&servers[1], &asked[1]).await) {
                tokio::task::yield_now().await;
            }
            self.detours.iter().for_each(FaultProxy::heal);
        };
        let [one, other] = &self.stores;
        let asking = async { tokio::join!(one.acquire(&asked[0]), other.acquire(&asked[1])) };
        let seen = tokio::time::timeout(BOUND / 10, seen);
        let both = tokio::time::timeout(BOUND, async { tokio::join!(asking, seen) });
        let ((one, other), seen) = both.await.ok()?;
        seen.ok()?;
        Some([one.ok()?, other.ok()?])
    }
}
