//! Encrypted connections.

use tenure_conformance::certificates::both_sides_are_known_by_their_certificates;
use tenure_redis::RedisStore;
use tenure_testkit::{RedisOptions, RedisServer, SelfSigned, free_port};

#[tokio::test]
async fn both_sides_of_a_connection_to_redis_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("redis-ours"), SelfSigned::new("redis-theirs"));
    let port = free_port();
    let options = RedisOptions::with(&format!(
        "--tls-port {port} --tls-cert-file {} --tls-key-file {} --tls-ca-cert-file {} --tls-auth-clients yes",
        theirs.file, theirs.key, ours.file
    ));
    let _server = RedisServer::start(options).await.unwrap();
    let place = format!("localhost:{port}/0");
    let connect = async |url: &str| RedisStore::connect(url).await;
    both_sides_are_known_by_their_certificates([&ours, &theirs], ["redis", "rediss"], &place, connect).await;
}
