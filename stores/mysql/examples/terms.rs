//! Leader-terms under random faults, on a real server: `cargo run --release -p tenure-mysql --example terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use std::time::Duration;
use tenure_conformance::terms::{Campaign, Deployment, Process, run};
use tenure_mysql::MysqlStore;
use tenure_testkit::{FaultProxy, Mariadb};

const CAMPAIGN: Campaign = Campaign {
    ttl: Duration::from_millis(800),
    leases: 48,
    commands: &["tenure_acquire_1", "tenure_renew_1", "tenure_release_1"],
    faults_per_kill: 400,
};

const PROCESSES: usize = 4;

struct Alone(Mariadb);

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
    let server = Mariadb::start().await.unwrap();
    server.execute("CREATE DATABASE jobs").await.unwrap();
    MysqlStore::init(&server.uri_of("jobs")).await.unwrap();
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        let proxy = FaultProxy::mysql(server.address()).unwrap();
        let url = format!("mysql://root@{}/jobs", proxy.address());
        let store = MysqlStore::connect(&url).await.unwrap();
        processes.push(Process {
            store: Box::new(store),
            ways: vec![proxy],
        });
    }
    run(&CAMPAIGN, &mut Alone(server), processes).await
}
