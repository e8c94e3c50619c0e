//! Encrypted connections.

use crate::common::{request, seconds, take};
use tenure_core::Fault;
use tenure_redis::RedisStore;
use tenure_testkit::{RedisOptions, RedisServer, SelfSigned, free_port};

/// The server's certificate is trusted because the URL says so, and the client's is asked for.
#[tokio::test]
async fn both_sides_of_a_connection_to_redis_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("redis-ours"), SelfSigned::new("redis-theirs"));
    let port = free_port();
    let options = RedisOptions::with(&format!(
        "--tls-port {port} --tls-cert-file {} --tls-key-file {} --tls-ca-cert-file {} --tls-auth-clients yes",
        theirs.file, theirs.key, ours.file
    ));
    let _server = RedisServer::start(options).await.unwrap();
    let url = |options: &str| format!("rediss://localhost:{port}/0?{options}");
    let known = format!("cert={}&key={}", ours.file, ours.key);
    let store = RedisStore::connect(&url(&format!("ca={}&{known}", theirs.file)))
        .await
        .expect("known to each other");
    take(&store, &request("job", "a", seconds(60))).await;
    for unknown in [
        format!("ca={}", theirs.file),
        known.clone(),
        format!("ca={}&{known}", ours.file),
    ] {
        let error = RedisStore::connect(&url(&unknown)).await.expect_err("a stranger");
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
        (format!("cert={}", ours.file), "belong together".to_owned()),
    ] {
        let error = RedisStore::connect(&url(&useless)).await.expect_err("of no use");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(&told), "{error}");
    }
    let plain = format!("redis://localhost:{port}?ca={}", theirs.file);
    let error = RedisStore::connect(&plain).await.expect_err("not encrypted");
    assert!(
        error.fault == Fault::Invalid && error.message.contains("write rediss://"),
        "{error}"
    );
}
