//! Encrypted connections.

use tenure_conformance::certificates::{
    both_sides_are_known_by_their_certificates, certificate_of_a_root_is_told,
    replaced_certificates_are_used, scheme_of_another_port_is_told,
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

/// A server that also takes connections over TLS at this port, from whoever trusts this certificate.
async fn server_for_all(theirs: &SelfSigned, port: u16) -> RedisServer {
    let options = RedisOptions::with(&format!(
        "--tls-port {port} --tls-cert-file {} --tls-key-file {} --tls-auth-clients no",
        theirs.file, theirs.key
    ));
    RedisServer::start(options).await.unwrap()
}

#[tokio::test]
async fn scheme_of_redis_that_is_another_ports_is_told_with_the_way_out() {
    let theirs = SelfSigned::new("redis-theirs");
    let port = free_port();
    let server = server_for_all(&theirs, port).await;
    let places = [server.port(), port].map(|port| format!("localhost:{port}/0"));
    let places = places.each_ref().map(String::as_str);
    scheme_of_another_port_is_told(&theirs, ["redis", "rediss"], places, connect).await;
}

#[tokio::test]
async fn certificate_of_a_root_that_redis_shows_is_told_with_the_way_out() {
    let theirs = SelfSigned::signing("redis-theirs");
    let port = free_port();
    let _server = server_for_all(&theirs, port).await;
    let url = format!("rediss://localhost:{port}/0?ca={}", theirs.file);
    certificate_of_a_root_is_told(&url, connect).await;
}
