//! Leader-terms under random faults, on a real cluster of three: `cargo run --release -p tenure-etcd --example etcd_terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use std::time::Duration;
use tenure_conformance::terms::{Campaign, Deployment, Process, run};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, FaultProxy};

const CAMPAIGN: Campaign = Campaign {
    // The shortest that the cluster grants.
    ttl: Duration::from_secs(1),
    leases: 40,
    // Headers are compressed against those before them: a request cannot be repeated, nor known by its name.
    commands: &[],
    faults_per_kill: 120,
};

const PROCESSES: usize = 4;

struct Cluster(Etcd);

impl Deployment for Cluster {
    fn members(&self) -> usize {
        self.0.size()
    }

    async fn restart(&mut self, member: usize) {
        self.0.restart(member).await.unwrap();
    }

    fn freeze(&mut self, member: usize) {
        self.0.freeze(member);
    }

    fn thaw(&mut self, member: usize) {
        self.0.thaw(member);
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let etcd = Etcd::start(EtcdOptions::three()).await.unwrap();
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        let way = |member| FaultProxy::http2(etcd.address(member)).unwrap();
        let ways: Vec<FaultProxy> = (0..etcd.size()).map(way).collect();
        let addresses: Vec<String> = ways.iter().map(|way| way.address().to_string()).collect();
        let url = format!("etcd://{}", addresses.join(","));
        let store = EtcdStore::connect(&url).await.unwrap();
        processes.push(Process {
            store: Box::new(store),
            ways,
        });
    }
    run(&CAMPAIGN, &mut Cluster(etcd), processes).await
}
