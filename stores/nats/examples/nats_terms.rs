//! Leader-terms under random faults, on a real server: `cargo run --release -p tenure-nats --example nats_terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use tenure_conformance::terms::{Process, run_alone};
use tenure_nats::NatsStore;
use tenure_testkit::{FaultProxy, NatsOptions, NatsServer};

#[tokio::main]
async fn main() -> ExitCode {
    let mut server = NatsServer::start(NatsOptions::default()).await.unwrap();
    let address = server.address();
    let connect = async || {
        let proxy = FaultProxy::nats(address.clone()).unwrap();
        let url = format!("nats://{}", proxy.address());
        let store = NatsStore::connect(&url).await.unwrap();
        Process {
            store: Box::new(store),
            ways: vec![proxy],
        }
    };
    run_alone(&["PUB", "STREAM.MSG.GET", "PUB"], &mut server, connect).await
}
