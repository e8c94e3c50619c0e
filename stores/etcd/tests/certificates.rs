//! Encrypted connections.

use tenure_conformance::certificates::both_sides_are_known_by_their_certificates;
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, SelfSigned};

#[tokio::test]
async fn both_sides_of_a_connection_to_etcd_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("etcd-ours"), SelfSigned::new("etcd-theirs"));
    let options = EtcdOptions {
        tls: Some(((&theirs.file).into(), (&theirs.key).into())),
        ..EtcdOptions::default()
    };
    let asking = format!("--client-cert-auth --trusted-ca-file {}", ours.file);
    let etcd = Etcd::start(options.with(&asking)).await.unwrap();
    let address = etcd.address(0).replace("127.0.0.1", "localhost");
    let place = format!("{address}/app");
    let connect = async |url: &str| EtcdStore::connect(url).await;
    both_sides_are_known_by_their_certificates([&ours, &theirs], ["etcd", "etcds"], &place, connect).await;
}
