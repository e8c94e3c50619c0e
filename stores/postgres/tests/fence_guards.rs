//! Tables that refuse whoever has not entered.
use crate::common::Scratch;
use crate::fence::{cents, fenced, ledger, term, write};
use tenure_conformance::marks::is_not_guarded;
use tenure_core::{Fence, FenceError, Leases, ResourceName};
use tenure_postgres::{PostgresFence, PostgresStore};
use tenure_testkit::Postgres;

/// The trigger asks who has entered, whatever the statement; and the refusal is told as the fence's.
#[tokio::test]
async fn guarded_table_takes_writes_only_from_transactions_that_entered() {
    let (scratch, fence) = fenced().await;
    let table = format!("{}.account", scratch.schema);
    fence.guard(&table, &ledger()).await.unwrap();
    let mut client = scratch.client().await;
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    write(&mut client, &fence, &scratch, &term("nightly", 5))
        .await
        .unwrap();
    for statement in [
        format!("INSERT INTO {table} VALUES (2, 0)"),
        format!("UPDATE {table} SET cents = 7"),
        format!("DELETE FROM {table}"),
        format!("TRUNCATE {table}"),
    ] {
        let error = client.batch_execute(&statement).await.unwrap_err();
        let refusal = fence.refusal(&term("nightly", 5), &error).await;
        assert!(
            matches!(refusal, Some(FenceError::Unclaimed { .. })),
            "{statement}: {error:?}"
        );
        // Any program may show its term, and an old one is refused all the same.
        for (shown, number) in [
            ("5 nightly", 5),
            ("4 nightly", 4),
            ("5 hourly", 0),
            ("99999999999999999999 x", 0),
        ] {
            let transaction = client.transaction().await.unwrap();
            transaction
                .execute("SELECT set_config('tenure.term', $1, true)", &[&shown])
                .await
                .unwrap();
            let written = transaction.batch_execute(&statement).await;
            drop(transaction);
            match number {
                5 => written.unwrap(),
                4 => {
                    let error = written.unwrap_err();
                    let refusal = fence.refusal(&term("nightly", 4), &error).await;
                    assert!(
                        matches!(refusal, Some(FenceError::Stale { .. })),
                        "{shown}: {error:?}"
                    );
                }
                _ => drop(written.unwrap_err()),
            }
        }
    }
    assert_eq!(cents(&scratch).await, 1);
    fence.unguard(&table).await.unwrap();
    client
        .batch_execute(&format!("UPDATE {table} SET cents = 7"))
        .await
        .unwrap();
    let missing = fence.guard("no_such_table", &ledger()).await.unwrap_err();
    assert!(missing.to_string().contains("no_such_table"), "{missing}");
}

/// Each table asks for the term of its own resource, whatever was entered since.
#[tokio::test]
async fn transaction_writes_to_the_guarded_tables_of_all_resources_that_it_has_entered() {
    let (scratch, fence) = fenced().await;
    scratch
        .sql("CREATE TABLE {schema}.journal AS SELECT * FROM {schema}.account")
        .await;
    let journal = ResourceName::new("journal").unwrap();
    let terms = [
        ("account", ledger(), term("nightly", 5)),
        ("journal", journal, term("hourly", 7)),
    ];
    for (table, resource, term) in &terms {
        let table = format!("{}.{table}", scratch.schema);
        fence.guard(&table, resource).await.unwrap();
        fence.claim(resource, term).await.unwrap();
    }
    let write = |table: &str| format!("UPDATE {}.{table} SET cents = cents + 1", scratch.schema);
    let mut client = scratch.client().await;
    for way in ["by the driver", "by the function"] {
        let transaction = client.transaction().await.unwrap();
        for (_, resource, term) in &terms {
            match way {
                "by the driver" => fence.enter(&transaction, resource, term).await.unwrap(),
                _ => {
                    let (lease, token) = (term.lease.as_str(), term.token.signed());
                    let entering = format!("SELECT {}.enter($1, $2, $3)", scratch.schema);
                    transaction
                        .execute(&entering, &[&resource.as_str(), &lease, &token])
                        .await
                        .unwrap();
                }
            }
        }
        for table in ["account", "journal", "account"] {
            let written = transaction.execute(&write(table), &[]).await;
            assert_eq!(written.unwrap(), 1, "{table}, entered {way}");
        }
        transaction.commit().await.unwrap();
    }
    // Of those that it has not entered, none; and nothing is left for the next transaction.
    let transaction = client.transaction().await.unwrap();
    let (_, resource, term) = &terms[0];
    fence.enter(&transaction, resource, term).await.unwrap();
    let error = transaction.execute(&write("journal"), &[]).await.unwrap_err();
    transaction.rollback().await.unwrap();
    assert_eq!(error.code().unwrap().code(), "TN002", "{error}");
    let error = client.execute(&write("account"), &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "TN003", "{error}");
}

/// Tenure's own tables would take no lease and no claim any more, and what is no table has no triggers that
/// refuse.
#[tokio::test]
async fn what_is_no_table_of_the_users_own_is_not_guarded_in_postgres() {
    let (scratch, fence) = fenced().await;
    scratch
        .sql(
            "CREATE VIEW {schema}.shown AS SELECT * FROM {schema}.account; \
             CREATE MATERIALIZED VIEW {schema}.kept AS SELECT * FROM {schema}.account; CREATE SEQUENCE {schema}.numbers",
        )
        .await;
    for (table, said) in [
        ("leases", "not one of your data"),
        ("fences", "not one of your data"),
        ("refusals", "not one of your data"),
        ("shown", "guard the tables behind it"),
        ("kept", "guard the tables behind it"),
        ("numbers", "there is no table"),
        ("account_pkey", "there is no table"),
    ] {
        let full = format!("{}.{table}", scratch.schema);
        is_not_guarded(fence.guard(&full, &ledger()).await, [said, table]);
    }
    fence.claim(&ledger(), &term("nightly", 5)).await.unwrap();
    // One that an earlier Tenure has guarded all the same is let go.
    fence
        .unguard(&format!("{}.fences", scratch.schema))
        .await
        .unwrap();
}

/// A database of old ways reads a backslash in a text as the beginning of another character.
#[tokio::test]
async fn names_with_backslashes_are_guarded_and_short_ones_taken_where_texts_know_escapes() {
    let scratch = Scratch::bare(&Postgres::shared().await.uri());
    let url = scratch.url("options=-cstandard_conforming_strings%3Doff");
    PostgresStore::init(&url).await.unwrap();
    let fence = PostgresFence::connect(&url, Leases::Here).await.unwrap();
    scratch
        .sql("CREATE TABLE {schema}.account AS SELECT 1 AS id, 0::bigint AS cents")
        .await;
    let table = format!("{}.account", scratch.schema);
    let mut client = scratch.client().await;
    for resource in ["a\\'b\\\\", "\\'; DROP TABLE account; --", "a/b"] {
        let (resource, term) = (ResourceName::new(resource).unwrap(), term("hourly/x", 5));
        fence.guard(&table, &resource).await.unwrap();
        fence.claim(&resource, &term).await.unwrap();
        let update = format!("UPDATE {table} SET cents = cents + 1");
        let error = client.execute(&update, &[]).await.unwrap_err();
        let refusal = fence.refusal(&term, &error).await;
        let unclaimed = FenceError::Unclaimed {
            resource: resource.clone(),
            token: term.token,
        };
        assert_eq!(refusal, Some(unclaimed), "{error:?}");
        let transaction = client.transaction().await.unwrap();
        fence.enter(&transaction, &resource, &term).await.unwrap();
        assert_eq!(transaction.execute(&update, &[]).await.unwrap(), 1);
        transaction.commit().await.unwrap();
    }
    assert_eq!(cents(&scratch).await, 3);
}

/// The table has refused, whatever becomes of the look at the mark: it is no other error.
#[tokio::test]
async fn refusal_by_a_table_is_one_also_where_the_mark_cannot_be_read_in_postgres() {
    let (scratch, fence) = fenced().await;
    let account = format!("{}.account", scratch.schema);
    fence.guard(&account, &ledger()).await.unwrap();
    let client = scratch.client().await;
    let update = format!("UPDATE {account} SET cents = 7");
    let error = client.batch_execute(&update).await.unwrap_err();
    scratch.sql("ALTER TABLE {schema}.fences RENAME TO away").await;
    let refusal = fence.refusal(&term("nightly", 5), &error).await;
    assert!(matches!(&refusal, Some(FenceError::Store(_))), "{refusal:?}");
}

/// Two teams may mean one table: the job of the first would learn of it at its next write.
#[tokio::test]
async fn guard_that_replaces_another_resources_says_which_in_postgres() {
    let (scratch, fence) = fenced().await;
    scratch
        .sql("CREATE TABLE {schema}.part () INHERITS ({schema}.account)")
        .await;
    let quoted = ResourceName::new("it's \\ a \"ledger\"").unwrap();
    for table in ["account", "part"] {
        let table = format!("{}.{table}", scratch.schema);
        for (resource, replaced) in [
            (&ledger(), None),
            (&ledger(), None),
            (&quoted, Some(ledger())),
            (&ledger(), Some(quoted.clone())),
        ] {
            assert_eq!(fence.guard(&table, resource).await, Ok(replaced), "{table}");
        }
        fence.unguard(&table).await.unwrap();
        assert_eq!(fence.guard(&table, &quoted).await, Ok(None), "{table}");
    }
}
