//! A Redis primary with a replica, and three sentinels. They tell clients the servers' own addresses, past
//! any proxy: so there are no faults of the network, but servers are killed, frozen and cut off, and
//! fail-overs follow. The servers keep nothing on disk.
//!
//! Replication there confirms before the replica has it: a fail-over may lose what was granted last, two may
//! believe, and terms may be lost. The tokens alone are judged: none twice, and each above those that were
//! seen before it was asked for.

use super::network;
use std::sync::Arc;
use std::time::Duration;
use tenure::redis::RedisStore;
use tenure_conformance::terms::{Between, Campaign, Deployment, Process, Promise, Seen, run};
use tenure_testkit::RedisSentinels;

const PROCESSES: usize = 4;

/// The primary that was, and its replica that was.
const SERVERS: usize = 2;

struct Watched {
    servers: RedisSentinels,
    between: Option<Between>,
}

impl Deployment for Watched {
    fn members(&self) -> usize {
        SERVERS
    }

    fn kill(&mut self, member: usize) {
        self.servers.servers()[member].kill();
    }

    async fn restart(&mut self, member: usize) {
        let server = &mut self.servers.servers()[member];
        server.restart().await.expect("it starts again");
    }

    fn freeze(&mut self, member: usize) {
        self.servers.servers()[member].freeze();
    }

    fn thaw(&mut self, member: usize) {
        self.servers.servers()[member].thaw();
    }

    fn between(&self) -> Option<Between> {
        self.between.clone()
    }
}

pub async fn measure(terms: u64) -> Seen {
    let network = network();
    let started = match &network {
        Some(network) => RedisSentinels::on(network).await,
        None => RedisSentinels::start().await,
    };
    let mut sentinels = started.expect("sentinels");
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        let store = RedisStore::connect(&sentinels.url()).await.expect("it connects");
        processes.push(Process {
            store: Arc::new(store),
            ways: Vec::new(),
        });
    }
    let campaign = Campaign {
        terms,
        promise: Promise::Tokens,
        ttl: Duration::from_millis(800),
        leases: 48,
        commands: &[],
        faults_per_harm: 4,
        harmed_max: 1,
        // A primary that is silent for a second is replaced.
        harm_time_max: Duration::from_secs(6),
    };
    let members = sentinels.servers().each_ref().map(|server| server.address());
    let between = network.map(|network| Between {
        network,
        members: members.into(),
    });
    let mut watched = Watched {
        servers: sentinels,
        between,
    };
    run(&campaign, &mut watched, processes).await
}
