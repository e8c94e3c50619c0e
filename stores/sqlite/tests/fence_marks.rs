//! Pages of marks.

use crate::common::Scratch;
use rusqlite::Connection;
use std::sync::Arc;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::Leases;
use tenure_sqlite::SqliteFence;

/// Whatever a column holds: no text in its encoding, here.
#[tokio::test]
async fn a_damaged_mark_in_sqlite_hides_no_other() {
    let scratch = Scratch::new();
    SqliteFence::install(&Connection::open(scratch.file()).unwrap()).unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    let damage = async |resource: &str| {
        scratch.sql(&format!(
            "UPDATE tenure_fence SET lease = CAST(x'ff' AS TEXT) WHERE resource = '{resource}'"
        ));
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_sqlite_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new();
    SqliteFence::install(&Connection::open(scratch.file()).unwrap()).unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    let change = |change: &str, resource: &str| {
        scratch.sql(&format!("{change} WHERE resource = '{resource}'"));
    };
    let plant = async |resource: &str, number: i64| {
        change(&format!("UPDATE tenure_fence SET token = {number}"), resource);
    };
    let remove = async |resource: &str| change("DELETE FROM tenure_fence", resource);
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_sqlite() {
    let scratch = Scratch::new();
    let store = scratch.open();
    SqliteFence::install(&Connection::open(scratch.file()).unwrap()).unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    leases_that_nobody_holds_bound_the_first_claim(&store, &fence).await;
}

#[tokio::test]
async fn marks_in_sqlite_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new();
    SqliteFence::install(&Connection::open(scratch.file()).unwrap()).unwrap();
    let fence = SqliteFence::new(scratch.file(), Leases::Here).unwrap();
    marks_are_in_the_order_of_their_resources(&fence).await;
}
