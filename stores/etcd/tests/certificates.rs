//! Encrypted connections.

use tenure_conformance::certificates::{
    both_sides_are_known_by_their_certificates, certificate_of_a_root_is_told,
    replaced_certificates_are_used, scheme_of_another_port_is_told,
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

/// A server that takes connections over TLS alone, from whoever trusts this certificate.
async fn server_for_all(theirs: &SelfSigned) -> Etcd {
    let options = EtcdOptions {
        tls: Some(((&theirs.file).into(), (&theirs.key).into())),
        ..EtcdOptions::default()
    };
    Etcd::start(options).await.unwrap()
}

#[tokio::test]
async fn scheme_of_etcd_that_is_another_ports_is_told_with_the_way_out() {
    let theirs = SelfSigned::new("etcd-theirs");
    let (without, with) = (Etcd::start(EtcdOptions::default()), server_for_all(&theirs));
    let (without, with) = (without.await.unwrap(), with.await);
    let places = [place(&without), place(&with)];
    let places = places.each_ref().map(String::as_str);
    scheme_of_another_port_is_told(&theirs, ["etcd", "etcds"], places, connect).await;
}

/// With a password the first call is the login.
#[tokio::test]
async fn login_over_a_scheme_that_is_another_ports_is_told_with_the_way_out() {
    let theirs = SelfSigned::new("etcd-theirs");
    let server = server_for_all(&theirs).await;
    let url = format!("etcd://user:hunter2@{}", place(&server));
    let error = connect(&url).await.expect_err("it is no port for that");
    assert!(error.message.ends_with("say etcds:"), "{error}");
    assert!(!error.message.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn certificate_of_a_root_that_etcd_shows_is_told_with_the_way_out() {
    let theirs = SelfSigned::signing("etcd-theirs");
    let server = server_for_all(&theirs).await;
    let url = format!("etcds://{}?ca={}", place(&server), theirs.file);
    certificate_of_a_root_is_told(&url, connect).await;
}
