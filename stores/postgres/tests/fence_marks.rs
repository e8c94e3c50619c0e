//! Pages of marks, and what others do to their table.

use crate::common::Scratch;
use crate::fence::{fenced, ledger, term};
use std::sync::Arc;
use tenure_conformance::marks::{a_damaged_mark_hides_no_other, marks_are_in_the_order_of_their_resources};
use tenure_core::{Bump, Fence};
use tenure_postgres::PostgresFence;

#[tokio::test]
async fn a_damaged_mark_in_postgres_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url("")).await.unwrap();
    let damage = async |resource: &str| {
        let damaging = format!(
            "ALTER TABLE {{schema}}.fences DROP CONSTRAINT fences_token_check; \
             UPDATE {{schema}}.fences SET token = 0 WHERE resource = '{resource}'"
        );
        scratch.sql(&damaging).await;
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn marks_in_postgres_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = PostgresFence::connect(&scratch.url("")).await.unwrap();
    marks_are_in_the_order_of_their_resources(&fence).await;
}

/// As a trigger does that is to protect or to keep a table: a claim that says that it is made, and is not, would let earlier terms enter.
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
