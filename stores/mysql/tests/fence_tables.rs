//! Which table a name means to who guards it.
use crate::common::{Scratch, family};
use crate::fence::{fenced, ledger, term};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};
use tenure_conformance::marks::is_not_guarded;
use tenure_core::{Fault, Fence, FenceError, LeaseStore as _, Leases, Verdict};
use tenure_mysql::MysqlFence;
use tenure_testkit::{Mariadb, SqlFamily};

async fn insert(client: &mut Conn, table: &str) -> Result<(), Error> {
    client
        .query_drop(format!("INSERT INTO {table} VALUES (7, 7)"))
        .await
}

/// Refused while it is guarded, and taken when it is not any more.
async fn is_guarded(scratch: &Scratch, fence: &MysqlFence, named: &str, table: &str) {
    let mut client = scratch.client().await;
    fence.guard(named, &ledger()).await.expect(named);
    insert(&mut client, table).await.expect_err(table);
    fence.unguard(named).await.expect(named);
    insert(&mut client, table).await.expect(table);
}

/// Tables that the server's catalogue takes for the same name are others: each keeps its guard.
#[tokio::test]
async fn guard_of_a_table_of_mysql_takes_none_from_one_of_a_like_name() {
    let (scratch, fence) = fenced().await;
    let alike = ["account", "Account", "ACCOUNT", "caf\u{e9}", "cafe"];
    for table in &alike[1..] {
        scratch.sql(&format!("CREATE TABLE `{table}` LIKE account")).await;
    }
    for table in alike.iter().chain(&alike) {
        fence.guard(table, &ledger()).await.unwrap();
    }
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let mut client = scratch.client().await;
    for table in alike {
        let refused = insert(&mut client, &format!("`{table}`")).await;
        assert!(refused.is_err(), "{table} is not guarded any more");
    }
    fence.unguard("account").await.unwrap();
    insert(&mut client, "account").await.unwrap();
    for table in &alike[1..] {
        let refused = insert(&mut client, &format!("`{table}`")).await;
        assert!(refused.is_err(), "{table} is not guarded any more");
    }
}

/// A table may be named as the server's SQL names it, in quotes: then a dot is a letter like others.
#[tokio::test]
async fn table_of_mysql_with_a_dot_in_its_name_is_guarded() {
    let (scratch, fence) = fenced().await;
    let database = &scratch.database;
    for table in ["`2026.account`", "`a``b.c`"] {
        scratch.sql(&format!("CREATE TABLE {table} LIKE account")).await;
        is_guarded(&scratch, &fence, table, table).await;
        scratch.sql(&format!("TRUNCATE {table}")).await;
        is_guarded(&scratch, &fence, &format!("`{database}`.{table}"), table).await;
        scratch.sql(&format!("TRUNCATE {table}")).await;
        is_guarded(&scratch, &fence, &format!("{database}.{table}"), table).await;
    }
    for nothing in ["2026.account", "`2026.account", "`2026.account`x", "``", "`"] {
        let missing = fence.guard(nothing, &ledger()).await.unwrap_err();
        let FenceError::Store(missing) = missing else {
            panic!("{missing}")
        };
        assert_eq!(missing.fault, Fault::Invalid, "{missing}");
        assert!(missing.message.contains(nothing), "{missing}");
    }
}

/// Tenure's own tables would take no lease and no claim any more.
#[tokio::test]
async fn what_is_no_table_of_the_users_own_is_not_guarded_in_mysql() {
    let (scratch, fence) = fenced().await;
    scratch.sql("CREATE VIEW shown AS SELECT * FROM account").await;
    for (table, said) in [
        ("tenure_leases", "not one of your data"),
        ("tenure_fences", "not one of your data"),
        ("tenure_refusals", "not one of your data"),
        ("shown", "there is no table"),
    ] {
        is_not_guarded(fence.guard(table, &ledger()).await, [said, table]);
    }
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    // One that an earlier Tenure has guarded all the same is let go.
    fence.unguard("tenure_fences").await.unwrap();
}

/// MariaDB says of a table whose history it keeps that it is of another kind.
#[tokio::test]
async fn table_of_mariadb_that_keeps_its_history_is_guarded() {
    if family() != SqlFamily::Mariadb {
        return;
    }
    let (scratch, fence) = fenced().await;
    scratch
        .sql("CREATE TABLE kept (id INT PRIMARY KEY, cents BIGINT) WITH SYSTEM VERSIONING")
        .await;
    is_guarded(&scratch, &fence, "kept", "kept").await;
}

/// A replica that applies a statement runs the triggers of its own guards: who guards a table is told, and
/// who examines the server.
#[tokio::test]
async fn guard_of_mysql_whose_log_has_statements_is_told_of() {
    let server = Mariadb::primary(&[]).await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    scratch
        .sql("CREATE TABLE account (id INT PRIMARY KEY, cents BIGINT)")
        .await;
    let (fence, store) = (
        MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap(),
        scratch.store().await,
    );
    let told = async || {
        let findings = store.examine().await.unwrap();
        findings.into_iter().find(|finding| finding.subject == "guards")
    };
    let set = |format: &str| format!("SET GLOBAL binlog_format = {format}");
    server.execute(&set("MIXED")).await.unwrap();
    assert_eq!(told().await, None, "there is no guard yet");
    fence.guard("account", &ledger()).await.unwrap();
    assert_eq!(fence.log_has_statements().await, Ok(true));
    let finding = told().await.unwrap();
    assert_eq!(finding.verdict, Verdict::Warning, "{finding:?}");
    server.execute(&set("ROW")).await.unwrap();
    assert_eq!(fence.log_has_statements().await, Ok(false));
    assert_eq!(told().await, None);
}
