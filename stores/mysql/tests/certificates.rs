//! Certificates of clients, which an account may demand.

use crate::common::{request, seconds, take};
use tenure_core::{Fault, StoreError};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Mariadb, SelfSigned};

async fn refused(url: &str) -> StoreError {
    MysqlStore::connect(url).await.expect_err("it is refused")
}

/// As a managed service makes accounts that has clients be known by their certificates.
#[tokio::test]
async fn account_of_mysql_that_requires_a_certificate_keeps_leases() {
    let (ours, theirs) = (SelfSigned::new("mysql-ours"), SelfSigned::new("mysql-theirs"));
    let settings = [
        "tls-version=TLSv1.2,TLSv1.3".to_owned(),
        format!("ssl-cert={}", theirs.file),
        format!("ssl-key={}", theirs.key),
        format!("ssl-ca={}", ours.file),
    ];
    let server = Mariadb::with_settings(&settings.each_ref().map(String::as_str))
        .await
        .unwrap();
    server
        .execute("CREATE DATABASE jobs; CREATE USER own REQUIRE X509; GRANT ALL ON jobs.* TO own")
        .await
        .unwrap();
    let url = |options: &str| format!("mysql://own@localhost:{}/jobs?{options}", server.port());
    let roots = format!("ssl-ca={}", theirs.file);
    let (cert, key) = (format!("ssl-cert={}", ours.file), format!("ssl-key={}", ours.key));
    MysqlStore::init(&url(&format!("{roots}&{cert}&{key}")))
        .await
        .unwrap();
    // A certificate alone is encrypted for.
    for (job, options) in [
        ("verified", format!("{roots}&{cert}&{key}")),
        ("encrypted", format!("{cert}&{key}")),
    ] {
        let store = MysqlStore::connect(&url(&options)).await.unwrap();
        take(&store, &request(job, "holder", seconds(60))).await;
    }
    let error = refused(&url(&roots)).await;
    assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
    assert!(error.message.contains("ssl-cert= and ssl-key="), "{error}");
    for (useless, why) in [
        (cert.clone(), "belong together"),
        (key.clone(), "belong together"),
        (format!("{cert}&{key}&ssl-mode=disabled"), "are for TLS"),
        (format!("{cert}&{key}&{key}"), "ssl-key twice"),
        (format!("ssl-cert={}&{key}", ours.key), "holds no certificate"),
        (format!("{cert}&ssl-key={}", ours.file), "holds no private key"),
    ] {
        let error = refused(&url(&useless)).await;
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(why), "{why}: {error}");
    }
}
