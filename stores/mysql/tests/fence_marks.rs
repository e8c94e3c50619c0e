//! Looks at marks: they tell what is so now, or nothing.
use crate::common::Scratch;
use crate::fence::{ledger, term};
use std::sync::Arc;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::{Bump, Certainty, Cursor, Fault, Fence, FenceError, Leases, ListedMark, ResourceName};
use tenure_mysql::MysqlFence;
use tenure_testkit::Mariadb;

/// What the checks of the table let nobody write, as where somebody has taken one away.
#[tokio::test]
async fn a_damaged_mark_in_mysql_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    let damage = async |resource: &str| {
        let damaging = format!(
            "ALTER TABLE tenure_fences DROP CONSTRAINT tenure_fences_token; \
             UPDATE tenure_fences SET token = 0 WHERE resource = '{resource}'"
        );
        scratch.sql(&damaging).await;
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_mysql_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new().await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    let change = async |change: &str, resource: &str| {
        scratch
            .sql(&format!("{change} WHERE resource = '{resource}'"))
            .await;
    };
    let plant = async |resource: &str, number: i64| {
        change(&format!("UPDATE tenure_fences SET token = {number}"), resource).await;
    };
    let remove = async |resource: &str| change("DELETE FROM tenure_fences", resource).await;
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

fn faulty<T: std::fmt::Debug>(looked: Result<T, FenceError>) -> Fault {
    match looked {
        Err(FenceError::Store(error)) if error.certainty == Certainty::NotApplied => error.fault,
        other => panic!("{other:?}"),
    }
}

/// What a server that takes no writes says of a mark may be old: a stale term would be told that it may go
/// on.
#[tokio::test]
async fn marks_of_a_mysql_that_is_demoted_are_not_told() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    let (resource, claimed) = (ledger(), term("nightly", 5));
    fence.claim(&resource, &claimed).await.unwrap();
    server.execute("SET GLOBAL read_only = ON").await.unwrap();
    assert_eq!(faulty(fence.check(&resource, &claimed).await), Fault::Unreachable);
    assert_eq!(faulty(fence.mark(&resource).await), Fault::Unreachable);
    assert_eq!(
        faulty(fence.marks(Some(&Cursor::from(&resource))).await),
        Fault::Unreachable
    );
    server.execute("SET GLOBAL read_only = OFF").await.unwrap();
    assert_eq!(fence.check(&resource, &claimed).await, Ok(()));
}

/// Nor are they raised there, also by a role that may write all the same: the server that is primary now
/// would not know of it.
#[tokio::test]
async fn marks_of_a_mysql_that_is_demoted_are_not_raised() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    let (resource, fresh) = (ledger(), ResourceName::new("fresh").unwrap());
    fence.claim(&resource, &term("nightly", 5)).await.unwrap();
    server.execute("SET GLOBAL read_only = ON").await.unwrap();
    for resource in [&resource, &fresh] {
        let claimed = fence.claim(resource, &term("nightly", 9)).await;
        assert_eq!(faulty(claimed), Fault::Unreachable);
        // Nor is a claim that is there already told from what may be old.
        let claimed = fence.claim(resource, &term("nightly", 5)).await;
        assert_eq!(faulty(claimed), Fault::Unreachable);
        let bump = Bump {
            resource: resource.clone(),
            above: None,
            lease: None,
        };
        assert_eq!(faulty(fence.bump(&bump).await), Fault::Unreachable);
    }
    server.execute("SET GLOBAL read_only = OFF").await.unwrap();
    let page = fence.marks(None).await.unwrap();
    let understood = page.marks.iter().filter_map(ListedMark::understood);
    let marks: Vec<_> = understood
        .map(|mark| (&mark.resource, mark.token.number()))
        .collect();
    assert_eq!(marks, [(&resource, 5)]);
}

/// A session that does not commit by itself goes on seeing what it saw first.
#[tokio::test]
async fn marks_of_mysql_are_not_told_from_a_transaction_that_began_before() {
    let server = Mariadb::start().await.unwrap();
    let scratch = Scratch::on(&server.address()).await;
    let database = &scratch.database;
    scratch
        .sql(&format!(
            "CREATE USER service IDENTIFIED BY 'x'; GRANT SELECT, INSERT, UPDATE, EXECUTE ON {database}.* TO service; \
             SET GLOBAL init_connect = 'SET autocommit = 0'"
        ))
        .await;
    let owners = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    let (resource, earlier) = (ledger(), term("nightly", 5));
    owners.claim(&resource, &earlier).await.unwrap();
    let services = MysqlFence::connect(&server.uri_as("service", "x", database), Leases::Here).await;
    let services = services.unwrap();
    let before = services.check(&resource, &earlier).await;
    owners.claim(&resource, &term("nightly", 9)).await.unwrap();
    let after = services.check(&resource, &earlier).await;
    assert_eq!(faulty(after), Fault::Unsupported, "{before:?} before");
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_mysql() {
    let scratch = Scratch::new().await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    leases_that_nobody_holds_bound_the_first_claim(&scratch.store().await, &fence).await;
}

#[tokio::test]
async fn marks_in_mysql_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = MysqlFence::connect(&scratch.url(), Leases::Here).await.unwrap();
    marks_are_in_the_order_of_their_resources(&fence).await;
}
