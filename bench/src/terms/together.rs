//! Deployments of several servers that a store knows all of, each process behind a proxy to each.

use super::network;
use std::sync::Arc;
use std::time::Duration;
use tenure::LeaseStore;
use tenure::contract::StoreError;
use tenure::etcd::EtcdStore;
use tenure::nats::NatsStore;
use tenure::redis::QuorumStore;
use tenure_conformance::terms::{Between, Campaign, Deployment, Process, Promise, Seen, run};
use tenure_testkit::{
    Etcd, EtcdOptions, FaultProxy, NatsCluster, NatsOptions, RedisOptions, RedisServer, eventually_async,
};

/// Processes that want the leases.
const PROCESSES: usize = 4;

/// Members of the quorum.
const MEMBERS: usize = 5;

/// A write twice as often as a read.
pub(super) const NATS_REQUESTS: &[&str] = &["PUB", "STREAM.MSG.GET", "PUB"];

/// Long, as a new cluster elects its leaders first.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// So many processes, each with proxies of its own to all of `addresses`; `url` makes the store's of theirs.
async fn processes<Store: LeaseStore + 'static>(
    addresses: &[String],
    proxy: impl Fn(String) -> Result<FaultProxy, tenure_testkit::Error>,
    url: impl Fn(String) -> String,
    connect: impl AsyncFn(&str) -> Result<Store, StoreError>,
) -> Vec<Process> {
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        let way = |address: &String| Arc::new(proxy(address.clone()).expect("a proxy"));
        let ways: Vec<Arc<FaultProxy>> = addresses.iter().map(way).collect();
        let hosts: Vec<String> = ways.iter().map(|way| way.address().to_string()).collect();
        let url = url(hosts.join(","));
        let store = eventually_async(CONNECT_PATIENCE, "a store", || connect(&url)).await;
        processes.push(Process {
            store: Arc::new(store),
            ways,
        });
    }
    processes
}

struct Quorum(Vec<RedisServer>);

impl Deployment for Quorum {
    fn members(&self) -> usize {
        self.0.len()
    }

    fn kill(&mut self, member: usize) {
        self.0[member].kill();
    }

    async fn restart(&mut self, member: usize) {
        self.0[member].restart().await.expect("it starts again");
    }

    fn freeze(&mut self, member: usize) {
        self.0[member].freeze();
    }

    fn thaw(&mut self, member: usize) {
        self.0[member].thaw();
    }
}

/// A majority of the members is down now and then, which stops everything and breaks nothing.
pub async fn redis_quorum(terms: u64) -> Seen {
    let mut servers = Vec::new();
    for _ in 0..MEMBERS {
        let server = RedisServer::start(RedisOptions::durable()).await;
        servers.push(server.expect("a Redis server"));
    }
    let campaign = Campaign {
        terms,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(1_000),
        leases: 48,
        commands: &["EVALSHA"],
        faults_per_harm: 10,
        harmed_max: 3,
        harm_time_max: Duration::from_secs(1),
    };
    let addresses: Vec<String> = servers.iter().map(RedisServer::address).collect();
    let processes = processes(
        &addresses,
        FaultProxy::redis,
        |hosts| format!("redis+quorum://{hosts}"),
        async |url| QuorumStore::connect(url).await,
    )
    .await;
    run(&campaign, &mut Quorum(servers), processes).await
}

struct EtcdCluster {
    servers: Etcd,
    between: Option<Between>,
}

impl Deployment for EtcdCluster {
    fn members(&self) -> usize {
        self.servers.size()
    }

    fn kill(&mut self, member: usize) {
        self.servers.kill(member);
    }

    async fn restart(&mut self, member: usize) {
        self.servers.restart(member).await.expect("it starts again");
    }

    fn freeze(&mut self, member: usize) {
        self.servers.freeze(member);
    }

    fn thaw(&mut self, member: usize) {
        self.servers.thaw(member);
    }

    fn between(&self) -> Option<Between> {
        self.between.clone()
    }
}

/// Nothing is repeated there.
pub async fn etcd(terms: u64) -> Seen {
    let options = EtcdOptions {
        network: network(),
        ..EtcdOptions::three()
    };
    let cluster = Etcd::start(options.clone()).await.expect("a cluster of etcd");
    let addresses: Vec<String> = (0..cluster.size())
        .map(|member| cluster.address(member))
        .collect();
    let processes = processes(
        &addresses,
        FaultProxy::http2,
        |hosts| format!("etcd://{hosts}"),
        async |url| EtcdStore::connect(url).await,
    )
    .await;
    let campaign = Campaign {
        terms,
        // Debian 12's etcd is one whose stalled leaders may end leases early (etcd-io/etcd#15247): whether
        // they did is counted beside. A newer one, which TESTKIT_ETCD may name, is held to exclusion.
        promise: Promise::of(&*processes[0].store),
        // The shortest that the cluster grants.
        ttl: Duration::from_secs(1),
        leases: 40,
        // Headers are compressed against those before them: a request cannot be repeated, nor known by its
        // name.
        commands: &[],
        faults_per_harm: 12,
        harmed_max: 1,
        harm_time_max: Duration::from_secs(3),
    };
    let between = options.network.map(|network| Between {
        network,
        members: addresses,
    });
    let mut cluster = EtcdCluster {
        servers: cluster,
        between,
    };
    run(&campaign, &mut cluster, processes).await
}

struct Servers {
    cluster: NatsCluster,
    between: Option<Between>,
}

impl Deployment for Servers {
    fn members(&self) -> usize {
        NATS_SERVERS
    }

    fn kill(&mut self, member: usize) {
        self.cluster.servers()[member].kill();
    }

    async fn restart(&mut self, member: usize) {
        let server = &mut self.cluster.servers()[member];
        server.restart().await.expect("it starts again");
    }

    fn freeze(&mut self, member: usize) {
        self.cluster.servers()[member].freeze();
    }

    fn thaw(&mut self, member: usize) {
        self.cluster.servers()[member].thaw();
    }

    fn between(&self) -> Option<Between> {
        self.between.clone()
    }
}

const NATS_SERVERS: usize = 3;

pub async fn nats_cluster(terms: u64) -> Seen {
    let options = NatsOptions {
        network: network(),
        ..NatsOptions::durable()
    };
    let started = NatsCluster::start(options.clone()).await;
    let mut cluster = started.expect("a cluster of NATS");
    let campaign = Campaign {
        terms,
        promise: Promise::Exclusion,
        ttl: Duration::from_millis(1_000),
        leases: 48,
        commands: NATS_REQUESTS,
        faults_per_harm: 10,
        harmed_max: 1,
        // An election takes the servers 4 to 10 s.
        harm_time_max: Duration::from_secs(14),
    };
    let monitors = cluster.monitor_addresses();
    let addresses: Vec<String> = cluster.servers().iter().map(|server| server.address()).collect();
    let processes = processes(
        &addresses,
        FaultProxy::nats,
        |hosts| format!("nats://{hosts}?monitor={monitors}"),
        async |url| NatsStore::connect(url).await,
    )
    .await;
    let between = options.network.map(|network| Between {
        network,
        members: addresses,
    });
    run(&campaign, &mut Servers { cluster, between }, processes).await
}
