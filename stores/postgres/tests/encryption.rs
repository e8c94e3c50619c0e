//! Encrypted connections.
use crate::common::{PATIENCE, request, seconds, take};
use crate::connect::refused;
use tenure_core::{Fault, LeaseStore};
use tenure_postgres::PostgresStore;
use tenure_testkit::{Postgres, ScratchDir, eventually_async};

/// Encryption is used where it is demanded, and whoever verifies is not talked to by anybody else.
#[tokio::test]
async fn encryption_is_used_and_verified_where_that_is_asked_for() {
    let server = Postgres::with_encryption().await.unwrap();
    let root = server.root_certificate();
    let at = |host: &str, options: &str| {
        format!("postgres://postgres@{host}:{}/postgres?{options}", server.port())
    };
    PostgresStore::init(&at("127.0.0.1", "sslmode=require"))
        .await
        .unwrap();
    let verified = format!("sslmode=verify-full&sslrootcert={}", root.display());
    for options in ["", "sslmode=prefer", "sslmode=require"] {
        let store = PostgresStore::connect(&at("127.0.0.1", options)).await.unwrap();
        take(&store, &request(&format!("job{options}"), "a", seconds(60))).await;
    }
    let store = PostgresStore::connect(&at("localhost", &verified)).await.unwrap();
    take(&store, &request("verified", "a", seconds(60))).await;
    for (host, options, way_out) in [
        ("127.0.0.1", "sslmode=disable", ""),
        // Another name than the certificate's; and a root that did not sign it.
        ("127.0.0.1", verified.as_str(), "name the host"),
        ("localhost", "sslmode=verify-full", "by sslrootcert="),
    ] {
        let error = refused(&at(host, options)).await;
        assert!(error.message.contains(way_out), "{options}: {error}");
        assert!(
            matches!(error.fault, Fault::Unreachable | Fault::Unauthenticated),
            "{options}: {error}"
        );
    }
}

/// They are replaced in place before they expire, and may be caught half written.
#[tokio::test]
async fn roots_that_are_replaced_are_used_in_postgres() {
    let mut server = Postgres::with_encryption().await.unwrap();
    let other = Postgres::with_encryption().await.unwrap();
    let init = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
    PostgresStore::init(&init).await.unwrap();
    let folder = ScratchDir::new("roots");
    let file = folder.join("root.pem");
    std::fs::copy(server.root_certificate(), &file).unwrap();
    let url = format!(
        "postgres://postgres@localhost:{}/postgres?sslrootcert={}",
        server.port(),
        file.display()
    );
    let store = PostgresStore::connect(&url).await.unwrap();
    let asked = request("job", "a", seconds(60));
    take(&store, &asked).await;
    std::fs::write(&file, "").unwrap();
    server.kill();
    server.restart().await.unwrap();
    let told = async |way_out: &str| {
        let error = eventually_async(PATIENCE, way_out, || async {
            let told = store.get(&asked.name).await.err();
            match told {
                Some(error) if error.message.contains(way_out) => Ok(error),
                told => Err(format!("{told:?}")),
            }
        })
        .await;
        assert_eq!(error.fault, Fault::Unreachable, "{error}");
    };
    told("root.pem").await;
    std::fs::copy(other.root_certificate(), &file).unwrap();
    told("invalid peer certificate").await;
    std::fs::copy(server.root_certificate(), &file).unwrap();
    let found = || async { store.get(&asked.name).await.is_ok() };
    eventually_async(PATIENCE, "a connection by the new roots", found).await;
}

/// Whoever names roots wants them used, whatever else the URL says: nobody else is talked to, and nobody
/// without encryption.
#[tokio::test]
async fn roots_that_are_named_are_used_also_without_a_mode_in_postgres() {
    let server = Postgres::with_encryption().await.unwrap();
    let stranger = Postgres::with_encryption().await.unwrap();
    let plain = Postgres::shared().await;
    let root = server.root_certificate();
    let at = |host: &str, port: u16, options: &str| {
        format!("postgres://postgres@{host}:{port}/postgres?{options}")
    };
    let port = server.port();
    PostgresStore::init(&at("127.0.0.1", port, "sslmode=require"))
        .await
        .unwrap();
    for mode in [
        "",
        "&sslmode=allow",
        "&sslmode=prefer",
        "&sslmode=require",
        "&sslmode=verify-ca",
    ] {
        let options = format!("sslrootcert={}{mode}", root.display());
        let store = PostgresStore::connect(&at("localhost", port, &options))
            .await
            .unwrap();
        drop(store);
        // Another name, other roots, no encryption.
        let others = format!("sslrootcert={}{mode}", stranger.root_certificate().display());
        for url in [
            at("127.0.0.1", port, &options),
            at("localhost", port, &others),
            at("localhost", plain.port(), &options),
        ] {
            assert_eq!(refused(&url).await.fault, Fault::Unreachable, "{url}");
        }
    }
    let folder = ScratchDir::new("roots");
    let options = format!("sslrootcert={}", folder.pipe("root.pem").display());
    let error = refused(&at("localhost", port, &options)).await;
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.message.contains("no plain file"), "{error}");
    let options = format!("sslrootcert={}&sslmode=disable", root.display());
    let error = refused(&at("localhost", port, &options)).await;
    assert_eq!(error.fault, Fault::Invalid);
    assert!(
        error.message.contains("sslrootcert") && error.message.contains("sslmode"),
        "{error}"
    );
}
