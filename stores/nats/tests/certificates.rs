//! Encrypted connections.

use tenure_conformance::certificates::{
    both_sides_are_known_by_their_certificates, replaced_certificates_are_used,
};
use tenure_nats::NatsStore;
use tenure_testkit::{NatsOptions, NatsServer, SelfSigned};

/// It shows the second, and lets in whoever shows the first.
async fn server([ours, theirs]: [&SelfSigned; 2]) -> NatsServer {
    let settings = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}\n",
        theirs.file, theirs.key, ours.file
    );
    NatsServer::start(NatsOptions::default().with(&settings))
        .await
        .expect("a server")
}

fn place(server: &NatsServer) -> String {
    let address = server.address().replace("127.0.0.1", "localhost");
    format!("{address}/app")
}

async fn connect(url: &str) -> Result<NatsStore, tenure_core::StoreError> {
    NatsStore::connect(url).await
}

#[tokio::test]
async fn both_sides_of_a_connection_to_nats_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("nats-ours"), SelfSigned::new("nats-theirs"));
    let server = server([&ours, &theirs]).await;
    let place = place(&server);
    both_sides_are_known_by_their_certificates([&ours, &theirs], ["nats", "nats+tls"], &place, connect).await;
}

/// It waits for the client to begin, which waits for its greeting.
#[tokio::test]
async fn server_that_begins_with_the_handshake_is_told() {
    let theirs = SelfSigned::new("nats-theirs");
    let settings = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", handshake_first: true }}\n",
        theirs.file, theirs.key
    );
    let server = NatsServer::start(NatsOptions::default().with(&settings))
        .await
        .expect("a server");
    let url = format!("nats+tls://{}?ca={}", place(&server), theirs.file);
    let error = connect(&url).await.expect_err("nobody greets");
    assert!(error.message.contains("handshake_first"), "{error}");
}

#[tokio::test]
async fn replaced_certificates_are_used_with_nats() {
    let (ours, theirs) = (SelfSigned::new("nats-ours"), SelfSigned::new("nats-theirs"));
    let mut server = server([&ours, &theirs]).await;
    let files = format!("ca={}&cert={}&key={}", theirs.file, ours.file, ours.key);
    let url = format!("nats+tls://{}?{files}", place(&server));
    let restart = async || server.restart().await.expect("it comes back");
    replaced_certificates_are_used([&ours, &theirs], &url, connect, restart).await;
}
