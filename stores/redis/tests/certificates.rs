//! Encrypted connections.

use tenure_conformance::certificates::{
    both_sides_are_known_by_their_certificates, replaced_certificates_are_used,
};
use tenure_redis::RedisStore;
use tenure_testkit::{RedisOptions, RedisServer, SelfSigned, free_port};

/// It shows the second at this port, and lets in whoever shows the first.
async fn server([ours, theirs]: [&SelfSigned; 2], port: u16) -> RedisServer {
    let options = RedisOptions::with(&format!(
        "--tls-port {port} --tls-cert-file {} --tls-key-file {} --tls-ca-cert-file {} --tls-auth-clients yes",
        theirs.file, theirs.key, ours.file
    ));
    RedisServer::start(options).await.unwrap()
}

async fn connect(url: &str) -> Result<RedisStore, tenure_core::StoreError> {
    RedisStore::connect(url).await
}

#[tokio::test]
async fn both_sides_of_a_connection_to_redis_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("redis-ours"), SelfSigned::new("redis-theirs"));
    let port = free_port();
    let _server = server([&ours, &theirs], port).await;
    let place = format!("localhost:{port}/0");
    both_sides_are_known_by_their_certificates([&ours, &theirs], ["redis", "rediss"], &place, connect).await;
}

#[tokio::test]
async fn replaced_certificates_are_used_with_redis() {
    let (ours, theirs) = (SelfSigned::new("redis-ours"), SelfSigned::new("redis-theirs"));
    let port = free_port();
    let mut server = server([&ours, &theirs], port).await;
    let files = format!("ca={}&cert={}&key={}", theirs.file, ours.file, ours.key);
    let url = format!("rediss://localhost:{port}/0?{files}");
    let restart = async || server.restart().await.unwrap();
    replaced_certificates_are_used([&ours, &theirs], &url, connect, restart).await;
}
