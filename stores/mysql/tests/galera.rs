//! Clusters of Galera, which MariaDB alone has.
use crate::common::{Scratch, family};
use tenure_core::{Certainty, Fault};
use tenure_mysql::MysqlStore;
use tenure_testkit::{Mariadb, SqlFamily};

/// Whoever sets it up is told, and who connects to what was set up before the server joined a cluster.
#[tokio::test]
async fn galera_is_refused() {
    if family() == SqlFamily::Mysql {
        return;
    }
    let server = Mariadb::galera_of_one().await.unwrap();
    let scratch = Scratch::bare(&server.address()).await;
    let refused = |done: Result<(), tenure_core::StoreError>| {
        let error = done.unwrap_err();
        let kind = (error.fault, error.certainty);
        assert_eq!(kind, (Fault::Unsupported, Certainty::NotApplied), "{error}");
        assert!(error.message.contains("Galera"), "{error}");
    };
    refused(MysqlStore::init(&scratch.url()).await);
    // It has made nothing, and it was this alone that it was refused for.
    scratch.sql("SET GLOBAL wsrep_on = OFF").await;
    MysqlStore::init(&scratch.url()).await.unwrap();
    scratch.store().await;
    scratch.sql("SET GLOBAL wsrep_on = ON").await;
    refused(MysqlStore::connect(&scratch.url()).await.map(drop));
}
