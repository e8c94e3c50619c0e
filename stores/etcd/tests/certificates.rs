//! Encrypted connections.

use tenure_conformance::certificates::{
    both_sides_are_known_by_their_certificates, replaced_certificates_are_used,
};
use tenure_etcd::EtcdStore;
use tenure_testkit::{Etcd, EtcdOptions, SelfSigned};

/// It shows the second, and lets in whoever shows the first.
async fn server([ours, theirs]: [&SelfSigned; 2]) -> Etcd {
    let options = EtcdOptions {
        tls: Some(((&theirs.file).into(), (&theirs.key).into())),
        ..EtcdOptions::default()
    };
    let asking = format!("--client-cert-auth --trusted-ca-file {}", ours.file);
    Etcd::start(options.with(&asking)).await.unwrap()
}

fn place(etcd: &Etcd) -> String {
    let address = etcd.address(0).replace("127.0.0.1", "localhost");
    format!("{address}/app")
}

async fn connect(url: &str) -> Result<EtcdStore, tenure_core::StoreError> {
    EtcdStore::connect(url).await
}

#[tokio::test]
async fn both_sides_of_a_connection_to_etcd_are_known_by_their_certificates() {
    let (ours, theirs) = (SelfSigned::new("etcd-ours"), SelfSigned::new("etcd-theirs"));
    let etcd = server([&ours, &theirs]).await;
    both_sides_are_known_by_their_certificates([&ours, &theirs], ["etcd", "etcds"], &place(&etcd), connect)
        .await;
}

#[tokio::test]
async fn replaced_certificates_are_used_with_etcd() {
    let (ours, theirs) = (SelfSigned::new("etcd-ours"), SelfSigned::new("etcd-theirs"));
    let mut etcd = server([&ours, &theirs]).await;
    let files = format!("ca={}&cert={}&key={}", theirs.file, ours.file, ours.key);
    let url = format!("etcds://{}?{files}", place(&etcd));
    let restart = async || etcd.restart(0).await.unwrap();
    replaced_certificates_are_used([&ours, &theirs], &url, connect, restart).await;
}
