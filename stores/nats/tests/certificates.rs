//! Encrypted connections.

use tenure_conformance::certificates::both_sides_are_known_by_their_certificates;
use tenure_nats::NatsStore;
use tenure_testkit::{NatsOptions, NatsServer, SelfSigned};

#[tokio::test]
async fn both_sides_of_a_connection_to_nats_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("nats-ours"), SelfSigned::new("nats-theirs"));
    let settings = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}\n",
        theirs.file, theirs.key, ours.file
    );
    let server = NatsServer::start(NatsOptions::default().with(&settings))
        .await
        .expect("a server");
    let address = server.address().replace("127.0.0.1", "localhost");
    let place = format!("{address}/app");
    let connect = async |url: &str| NatsStore::connect(url).await;
    both_sides_are_known_by_their_certificates([&ours, &theirs], ["nats", "nats+tls"], &place, connect).await;
}
