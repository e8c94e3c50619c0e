//! Leader-terms under random faults, on a real server: `cargo run --release -p tenure-postgres --example postgres_terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use tenure_conformance::terms::{Process, run_alone};
use tenure_postgres::PostgresStore;
use tenure_testkit::{FaultProxy, Postgres};

#[tokio::main]
async fn main() -> ExitCode {
    let mut server = Postgres::start().await.unwrap();
    PostgresStore::init(&server.uri()).await.unwrap();
    let address = server.address();
    let connect = async || {
        let proxy = FaultProxy::postgres(address.clone()).unwrap();
        let address = proxy.address();
        let url = format!("postgres://postgres@{address}/postgres?sslmode=disable&listen=off");
        let store = PostgresStore::connect(&url).await.unwrap();
        Process {
            store: Box::new(store),
            ways: vec![proxy],
        }
    };
    run_alone(&["acquire", "renew", "release"], &mut server, connect).await
}
