//! Group replication, which MySQL alone has. To be run with a MySQL: see "Tests" in README.
use crate::common::Scratch;
use tenure_core::{Durability, Fault, LeaseStore};
use tenure_mysql::MysqlStore;
use tenure_testkit::Mariadb;

/// A new primary must have applied what was confirmed before it takes writes: where it need not, nothing is
/// kept there.
#[tokio::test]
#[ignore = "MariaDB has no such groups"]
async fn group_of_mysql_is_taken_while_its_next_primary_waits_for_its_backlog() {
    let server = Mariadb::group_of_one(&[]).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let level = |level: &str| format!("SET GLOBAL group_replication_consistency = '{level}'");
    for waits in [
        "BEFORE_ON_PRIMARY_FAILOVER",
        "BEFORE",
        "AFTER",
        "BEFORE_AND_AFTER",
    ] {
        server.execute(&level(waits)).await.unwrap();
        let store = scratch.store().await;
        assert_eq!(store.traits().durability, Durability::Safe, "{waits}");
    }
    // Its own channel is no other server that it follows, whatever mode sessions begin with.
    let mode = "SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'";
    server.execute(mode).await.unwrap();
    let traits = scratch.store().await.traits();
    assert_eq!(traits.durability, Durability::Safe, "{mode}");
    server.execute(&level("EVENTUAL")).await.unwrap();
    let error = MysqlStore::connect(&scratch.url()).await.unwrap_err();
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("BEFORE_ON_PRIMARY_FAILOVER"), "{error}");
}

/// As after a crash, where it does not begin by itself to be of the group: it takes writes, and the others
/// may have elected.
#[tokio::test]
#[ignore = "MariaDB has no such groups"]
async fn member_of_a_group_of_mysql_that_has_left_it_is_refused() {
    let server = Mariadb::group_of_one(&[]).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    scratch.store().await;
    let leave = "STOP GROUP_REPLICATION; SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF";
    server.execute(leave).await.unwrap();
    for refused in [
        MysqlStore::connect(&scratch.url()).await.map(drop),
        MysqlStore::init(&scratch.url()).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.fault, Fault::ReadOnly, "{error}");
        assert!(error.message.contains("OFFLINE"), "{error}");
    }
}

#[tokio::test]
#[ignore = "MariaDB has no such groups"]
async fn group_of_mysql_in_which_several_take_writes_is_refused() {
    let several = [
        "loose-group-replication-single-primary-mode=OFF",
        "loose-group-replication-enforce-update-everywhere-checks=ON",
    ];
    let server = Mariadb::group_of_one(&several).await.unwrap();
    let url = server.uri_of("mysql");
    for refused in [
        MysqlStore::connect(&url).await.map(drop),
        MysqlStore::init(&url).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.fault, Fault::Unsupported, "{error}");
        assert!(error.message.contains("several servers take writes"), "{error}");
    }
}
