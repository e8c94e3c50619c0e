//! A quorum of three members, one of them behind a proxy.

use super::connection;
use std::collections::BTreeMap;
use tenure_core::{Lease, LeaseName, LeaseStore as _};
use tenure_redis::QuorumStore;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer};

/// A record, or another hash, as a member has it.
pub type Record = BTreeMap<String, String>;

/// Three members, one of them behind a proxy.
pub struct Three {
    pub servers: Vec<RedisServer>,
    pub proxy: FaultProxy,
    pub store: QuorumStore,
}

impl Three {
    /// Whose member at this place is behind the proxy.
    pub async fn behind_a_proxy(member: usize) -> Self {
        Self::of(RedisOptions::default(), member).await
    }

    /// The same, of servers that are started so.
    pub async fn of(options: RedisOptions, member: usize) -> Self {
        let servers = super::servers(3, options).await;
        let (proxy, store) = super::quorum_through_a_proxy(&servers, member).await;
        Self {
            servers,
            proxy,
            store,
        }
    }

    /// What the quorum shows of a lease that it knows.
    pub async fn lease(&self, name: &LeaseName) -> Lease {
        let shown = self.store.get(name).await;
        shown.expect("a read").expect("a record")
    }

    /// Has a member do this beneath the store.
    pub async fn asked(&self, member: usize, command: &str, arguments: &[&str]) {
        let command = redis::cmd(command).arg(arguments).to_owned();
        let mut member = connection(&self.servers[member].url()).await;
        let _done: redis::Value = command.query_async(&mut member).await.expect("the test can ask");
    }

    /// What a member has at a key.
    pub async fn hash(&self, member: usize, key: &str) -> Record {
        let ask = redis::cmd("HGETALL").arg(key).to_owned();
        let mut member = connection(&self.servers[member].url()).await;
        ask.query_async(&mut member).await.expect("the test can ask")
    }

    /// What a member has of a lease.
    pub async fn record(&self, member: usize, lease: &str) -> Record {
        self.hash(member, &format!("{{tenure}}:lease:{lease}")).await
    }
}
