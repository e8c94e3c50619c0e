//! Encrypted connections.

use crate::common::{request, seconds, take};
use tenure_core::Fault;
use tenure_nats::NatsStore;
use tenure_testkit::{NatsOptions, NatsServer, SelfSigned};

/// The server's certificate is trusted because the URL says so, and the client's is asked for.
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
    let url = |options: &str| format!("nats+tls://{address}/app?{options}");
    let known = format!("cert={}&key={}", ours.file, ours.key);
    let store = NatsStore::connect(&url(&format!("ca={}&{known}", theirs.file)))
        .await
        .expect("known to each other");
    take(&store, &request("job", "a", seconds(60))).await;
    for unknown in [
        format!("ca={}", theirs.file),
        known.clone(),
        format!("ca={}&{known}", ours.file),
    ] {
        let error = NatsStore::connect(&url(&unknown)).await.expect_err("a stranger");
        assert!(
            [Fault::Unreachable, Fault::TimedOut].contains(&error.fault),
            "{unknown}: {error}"
        );
    }
    for (useless, told) in [
        (format!("ca={}", ours.key), format!("ca {}", ours.key)),
        ("ca=/nowhere/ca.pem".to_owned(), "ca /nowhere/ca.pem".to_owned()),
        (
            format!("cert={0}&key={0}", ours.file),
            format!("key {}", ours.file),
        ),
    ] {
        let error = NatsStore::connect(&url(&useless)).await.expect_err("of no use");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(&told), "{error}");
    }
}
