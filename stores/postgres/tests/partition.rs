//! Guarded tables that statements reach by another table's name: partitions, and tables that inherit.
use crate::common::Scratch;
use crate::fence::{fenced, ledger, term};
use tenure_core::{Fence, FenceError};
use tenure_postgres::PostgresFence;
use tokio_postgres::Client;

/// A table in two parts, of which the first is guarded; one that inherits from another, and is guarded.
async fn parted() -> (Scratch, PostgresFence, Client) {
    let (scratch, fence) = fenced().await;
    scratch
        .sql(
            "CREATE TABLE {schema}.parted (id int, cents bigint) PARTITION BY RANGE (id); \
             CREATE TABLE {schema}.guarded PARTITION OF {schema}.parted FOR VALUES FROM (0) TO (10); \
             CREATE TABLE {schema}.free PARTITION OF {schema}.parted FOR VALUES FROM (10) TO (20); \
             INSERT INTO {schema}.parted VALUES (1, 0), (11, 0); \
             CREATE TABLE {schema}.parent (id int, cents bigint); \
             CREATE TABLE {schema}.heir () INHERITS ({schema}.parent); \
             INSERT INTO {schema}.heir VALUES (1, 0)",
        )
        .await;
    for table in ["guarded", "heir"] {
        let table = format!("{}.{table}", scratch.schema);
        // Guarded again is guarded once.
        fence.guard(&table, &ledger()).await.unwrap();
        fence.guard(&table, &ledger()).await.unwrap();
    }
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    let client = scratch.client().await;
    (scratch, fence, client)
}

const WRITES: [&str; 10] = [
    "INSERT INTO {schema}.parted VALUES (2, 0)",
    "UPDATE {schema}.parted SET cents = cents + 1",
    // From one part into the other, either way.
    "UPDATE {schema}.parted SET id = 12 WHERE id = 1",
    "UPDATE {schema}.parted SET id = 3 WHERE id = 11",
    "DELETE FROM {schema}.parted WHERE id < 10",
    "INSERT INTO {schema}.guarded VALUES (2, 0)",
    "UPDATE {schema}.parent SET cents = cents + 1",
    "DELETE FROM {schema}.parent",
    "TRUNCATE {schema}.parted",
    "TRUNCATE {schema}.parent",
];

#[tokio::test]
async fn guarded_partition_takes_no_write_by_its_parents_name_from_who_has_not_entered() {
    let (scratch, fence, mut client) = parted().await;
    for write in WRITES.map(|write| write.replace("{schema}", &scratch.schema)) {
        let error = client.batch_execute(&write).await.expect_err(&write);
        assert_eq!(error.code().map(|code| code.code()), Some("TN003"), "{write}");
        let refusal = fence.refusal(&term("nightly", 5), &error).await;
        assert!(
            matches!(refusal, Some(FenceError::Unclaimed { .. })),
            "{write}: {error:?}"
        );
        // Whoever has entered writes, and each row is there: as many as of a table without a guard.
        let transaction = client.transaction().await.unwrap();
        fence
            .enter(&transaction, &ledger(), &term("nightly", 5))
            .await
            .unwrap();
        let rows = transaction.execute(&write, &[]).await.expect(&write);
        assert_eq!(rows > 0, !write.starts_with("TRUNCATE"), "{write}");
        transaction.rollback().await.unwrap();
    }
    // What leaves the guarded part alone is nobody's business.
    scratch
        .sql("UPDATE {schema}.parted SET cents = 7 WHERE id = 11")
        .await;
    for table in ["guarded", "heir"] {
        fence
            .unguard(&format!("{}.{table}", scratch.schema))
            .await
            .unwrap();
    }
    for write in WRITES {
        scratch.sql(write).await;
    }
}

/// A part that is in parts itself hands its triggers on to them.
#[tokio::test]
async fn parts_of_parts_are_guarded_each_in_any_order() {
    let (scratch, fence, mut client) = parted().await;
    scratch
        .sql(
            "CREATE TABLE {schema}.half PARTITION OF {schema}.parted FOR VALUES FROM (20) TO (40) PARTITION BY RANGE (id); \
             CREATE TABLE {schema}.quarter PARTITION OF {schema}.half FOR VALUES FROM (20) TO (30) PARTITION BY RANGE (id); \
             CREATE TABLE {schema}.leaf PARTITION OF {schema}.quarter FOR VALUES FROM (20) TO (25); \
             INSERT INTO {schema}.parted VALUES (21, 0)",
        )
        .await;
    let order = ["half", "quarter", "leaf"];
    let named = |table: &str| format!("{}.{table}", scratch.schema);
    for tables in [
        order,
        [order[2], order[1], order[0]],
        [order[1], order[2], order[0]],
    ] {
        for table in tables.into_iter().chain(tables) {
            fence.guard(&named(table), &ledger()).await.expect(table);
        }
        for table in tables {
            for write in ["parted", "half", "quarter", "leaf"] {
                let write = format!("UPDATE {} SET cents = cents + 1 WHERE id = 21", named(write));
                let error = client.batch_execute(&write).await.expect_err(&write);
                assert_eq!(error.code().map(|code| code.code()), Some("TN003"), "{write}");
                let transaction = client.transaction().await.unwrap();
                fence
                    .enter(&transaction, &ledger(), &term("nightly", 5))
                    .await
                    .unwrap();
                assert_eq!(transaction.execute(&write, &[]).await.unwrap(), 1, "{write}");
                transaction.rollback().await.unwrap();
            }
            fence.unguard(&named(table)).await.expect(table);
        }
        scratch
            .sql("UPDATE {schema}.parted SET cents = 7 WHERE id = 21")
            .await;
    }
}
