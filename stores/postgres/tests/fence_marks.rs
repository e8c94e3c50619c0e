//! Pages of marks.

use crate::common::Scratch;
use std::sync::Arc;
use tenure_conformance::marks::{a_damaged_mark_hides_no_other, marks_are_in_the_order_of_their_resources};
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
