//! Pages of marks, and what others do to their table.

use crate::common::Scratch;
use crate::fence::{fenced, ledger, term};
use std::sync::Arc;
use tenure_conformance::asking::finding;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::{Bump, Fence, LeaseStore, Leases, Verdict};
use tenure_postgres::{PostgresFence, PostgresStore};

#[tokio::test]
async fn a_damaged_mark_in_postgres_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    let damage = async |resource: &str| {
        let damaging = format!(
            "ALTER TABLE {{schema}}.fences DROP CONSTRAINT fences_token_check, DISABLE TRIGGER mark_only_rises; \
             UPDATE {{schema}}.fences SET token = 0 WHERE resource = '{resource}'"
        );
        scratch.sql(&damaging).await;
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_postgres_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    let change = async |change: &str, resource: &str| {
        scratch
            .sql(&format!("{change} WHERE resource = '{resource}'"))
            .await;
    };
    let plant = async |resource: &str, number: i64| {
        change(
            &format!("UPDATE {{schema}}.fences SET token = {number}"),
            resource,
        )
        .await;
    };
    let remove = async |resource: &str| change("DELETE FROM {schema}.fences", resource).await;
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_postgres() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    leases_that_nobody_holds_bound_the_first_claim(&scratch.store().await, &fence).await;
}

#[tokio::test]
async fn marks_in_postgres_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url(""), Leases::Here)
        .await
        .unwrap();
    marks_are_in_the_order_of_their_resources(&fence).await;
}

/// As a trigger does that is to protect or to keep a table: a claim that says that it is made, and is not,
/// would let earlier terms enter.
#[tokio::test]
async fn mark_that_a_trigger_keeps_as_it_is_counts_as_raised_by_nobody() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("job", 1)).await.unwrap();
    let protecting = "CREATE FUNCTION {schema}.protect() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
                      CREATE TRIGGER protect BEFORE UPDATE ON {schema}.fences FOR EACH ROW EXECUTE FUNCTION {schema}.protect()";
    scratch.sql(protecting).await;
    let bump = Bump {
        resource: ledger(),
        above: None,
        lease: None,
    };
    let refused = [
        fence.claim(&ledger(), &term("job", 2)).await.map(drop),
        fence.bump(&bump).await.map(drop),
    ];
    for error in refused {
        let error = error.expect_err("it is not raised").to_string();
        assert!(error.contains("the mark was not raised"), "{error}");
    }
}

/// As by hand, by a restore over what is there, or by what applies the changes of another server, for which
/// no usual trigger is called.
#[tokio::test]
async fn mark_of_postgres_is_lowered_by_nobody_who_writes_to_its_table() {
    let (scratch, fence) = fenced().await;
    fence.claim(&ledger(), &term("job", 5)).await.unwrap();
    let client = scratch.client().await;
    for session in ["origin", "replica"] {
        for change in ["token = 4", "resource = 'another'"] {
            let change = format!(
                "SET session_replication_role = {session}; UPDATE {}.fences SET {change}",
                scratch.schema
            );
            let error = client.batch_execute(&change).await.unwrap_err();
            let refused_by = error.as_db_error().and_then(|answer| answer.constraint());
            assert_eq!(refused_by, Some("mark_only_rises"), "{change}: {error:?}");
        }
    }
    assert_eq!(fence.check(&ledger(), &term("job", 5)).await, Ok(()));
    // Who means it removes the mark.
    scratch
        .sql("UPDATE {schema}.fences SET token = 6; DELETE FROM {schema}.fences")
        .await;
    assert_eq!(fence.mark(&ledger()).await, Ok(None));
}

/// What is lacking is told of, and comes with the next set-up, which waits for no transaction that has
/// entered.
#[tokio::test]
async fn set_up_in_which_marks_can_be_lowered_is_told_of_and_brought_up_to_date() {
    let (scratch, fence) = fenced().await;
    let held = term("job", 5);
    fence.claim(&ledger(), &held).await.unwrap();
    let store = scratch.store().await;
    let lacks = [
        (
            "set-up",
            "refuse_lower_mark",
            "DROP FUNCTION {schema}.refuse_lower_mark() CASCADE",
        ),
        (
            "tables",
            "a mark can be lowered",
            "DROP TRIGGER mark_only_rises ON {schema}.fences",
        ),
        // As a restore of data alone leaves it (`--disable-triggers`).
        (
            "tables",
            "a mark can be lowered",
            "ALTER TABLE {schema}.fences ENABLE TRIGGER ALL",
        ),
    ];
    let mut client = scratch.client().await;
    for (subject, told, lack) in lacks {
        scratch.sql(lack).await;
        let found = finding(&store, subject).await;
        assert_eq!(found.verdict, Verdict::Warning, "{lack}: {found:?}");
        assert!(found.detail.contains(told), "{lack}: {found:?}");
        let repair = found.repair.unwrap();
        assert!(repair.contains("tenure store init"), "{lack}: {repair}");
        let inside = client.transaction().await.unwrap();
        fence.enter(&inside, &ledger(), &held).await.unwrap();
        PostgresStore::init(&scratch.url("")).await.unwrap();
        inside.commit().await.unwrap();
    }
    assert_eq!(finding(&store, "set-up").await.verdict, Verdict::Good);
    let findings = store.examine().await.unwrap();
    assert!(
        findings.iter().all(|finding| finding.subject != "tables"),
        "{findings:?}"
    );
}
