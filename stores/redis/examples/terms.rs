//! Leader-terms under random faults, on a real server that has each write on disk before it confirms it: `cargo run --release -p tenure-redis --example terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use std::time::Duration;
use tenure_conformance::terms::{Campaign, Deployment, Process, run};
use tenure_redis::RedisStore;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer};

const CAMPAIGN: Campaign = Campaign {
    ttl: Duration::from_millis(800),
    leases: 48,
    commands: &["EVALSHA"],
    faults_per_kill: 400,
};

const PROCESSES: usize = 4;

struct Alone(RedisServer);

impl Deployment for Alone {
    fn members(&self) -> usize {
        1
    }

    async fn restart(&mut self, _member: usize) {
        self.0.restart().await.unwrap();
    }

    fn freeze(&mut self, _member: usize) {
        self.0.freeze();
    }

    fn thaw(&mut self, _member: usize) {
        self.0.thaw();
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        let proxy = FaultProxy::redis(server.address()).unwrap();
        let url = format!("redis://{}", proxy.address());
        let store = RedisStore::connect(&url).await.unwrap();
        processes.push(Process {
            store: Box::new(store),
            ways: vec![proxy],
        });
    }
    run(&CAMPAIGN, &mut Alone(server), processes).await
}
