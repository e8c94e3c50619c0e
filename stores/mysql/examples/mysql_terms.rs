//! Leader-terms under random faults, on a real server: `cargo run --release -p tenure-mysql --example mysql_terms -- 10000`.
//! What is done and looked for: `tenure_conformance::terms`.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made may stop")]

use std::process::ExitCode;
use tenure_conformance::terms::{Process, run_alone};
use tenure_mysql::MysqlStore;
use tenure_testkit::{FaultProxy, Mariadb};

#[tokio::main]
async fn main() -> ExitCode {
    let mut server = Mariadb::start().await.unwrap();
    server.execute("CREATE DATABASE jobs").await.unwrap();
    MysqlStore::init(&server.uri_of("jobs")).await.unwrap();
    let address = server.address();
    let connect = async || {
        let proxy = FaultProxy::mysql(address.clone()).unwrap();
        let url = format!("mysql://root@{}/jobs", proxy.address());
        let store = MysqlStore::connect(&url).await.unwrap();
        Process {
            store: Box::new(store),
            ways: vec![proxy],
        }
    };
    run_alone(
        &["tenure_acquire_1", "tenure_renew_1", "tenure_release_1"],
        &mut server,
        connect,
    )
    .await
}
