//! Leader-terms under random faults, on a real server that has each write on disk before it confirms it: `cargo run --release -p tenure-redis --example redis_terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use tenure_conformance::terms::{Process, run_alone};
use tenure_redis::RedisStore;
use tenure_testkit::{FaultProxy, RedisOptions, RedisServer};

#[tokio::main]
async fn main() -> ExitCode {
    let mut server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let address = server.address();
    let connect = async || {
        let proxy = FaultProxy::redis(address.clone()).unwrap();
        let url = format!("redis://{}", proxy.address());
        let store = RedisStore::connect(&url).await.unwrap();
        Process {
            store: Box::new(store),
            ways: vec![proxy],
        }
    };
    run_alone(&["EVALSHA"], &mut server, connect).await
}
