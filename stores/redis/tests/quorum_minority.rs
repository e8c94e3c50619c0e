//! A quorum in which one member alone has confirmed a token, whose candidate reaches no other one and asks
//! on.

use crate::common::guess::{KEY, asked_of, is_brought, is_confirmed, is_extended};
use crate::common::{
    BOUND, behind_proxies, granted, hosts, in_every_member, quorum_at, request, seconds, take, three_servers,
};
use std::time::Duration;
use tenure_core::{Acquire, Acquired, Grant, LeaseStore};
use tenure_redis::QuorumStore;
use tenure_testkit::{Fault, FaultProxy, RedisServer, eventually_async};

/// Between two tries of the candidate: far less than its ttl.
const PAUSE: Duration = Duration::from_millis(200);

/// Three members, and a candidate that reaches the first of them alone, where its attempt has a token. In the
/// others that has run out.
struct Minority {
    servers: Vec<RedisServer>,
    ours: QuorumStore,
    asked: Acquire,
    _proxies: Vec<FaultProxy>,
}

impl Minority {
    async fn new() -> Self {
        let servers = three_servers().await;
        let (proxies, ours) = behind_proxies(&servers).await;
        let asked = request("job", "a", seconds(3));
        let token = take(&quorum_at(&hosts(&servers)).await, &asked).await.token;
        in_every_member(&servers, token).await;
        for proxy in &proxies[1..] {
            proxy.set(Fault::Refuse);
            proxy.cut_connections();
        }
        for server in &servers[1..] {
            let over = [("expiresAt", "1")];
            asked_of(server, redis::cmd("HSET").arg(KEY).arg(&over)).await;
        }
        Self {
            servers,
            ours,
            asked,
            _proxies: proxies,
        }
    }

    /// What another comes to while the candidate asks on and on.
    async fn beside<T>(&self, another: impl Future<Output = T>) -> T {
        let asking = async {
            loop {
                let told = self.ours.acquire(&self.asked).await;
                assert!(
                    !matches!(told, Ok(Acquired::Granted(_))),
                    "by one member: {told:?}"
                );
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = asking => unreachable!("it asks on"),
            done = another => done,
        }
    }
}

async fn term(store: &QuorumStore, asked: &Acquire) -> Grant {
    eventually_async(BOUND, "a term", async || match store.acquire(asked).await {
        Ok(Acquired::Granted(grant)) => Ok(grant),
        told => Err(format!("{told:?}")),
    })
    .await
}

/// Two members are up, and both are reached by everybody else.
#[tokio::test]
async fn candidate_that_asks_one_member_alone_keeps_nobody_else_from_it_for_longer_than_its_ttl() {
    let mut minority = Minority::new().await;
    minority.servers[2].kill();
    let others = quorum_at(&hosts(&minority.servers)).await;
    let asked = request("job", "b", seconds(300));
    let grant = minority.beside(term(&others, &asked)).await;
    assert!(is_confirmed(&minority.servers[0], &asked).await, "{grant:?}");
}

/// It takes the term in, so that the leader outlasts the loss of another one.
#[tokio::test]
async fn leader_has_the_member_that_one_candidate_asks_alone() {
    let mut minority = Minority::new().await;
    let others = quorum_at(&hosts(&minority.servers)).await;
    let asked = request("job", "b", seconds(300));
    let grant = granted(others.acquire(&asked).await.expect("two of three"));
    let brought = is_brought(&others, &minority.servers[0], &asked, grant.token);
    minority.beside(brought).await;
    minority.servers[2].kill();
    minority.beside(is_extended(&others, &asked, grant.token)).await;
}
