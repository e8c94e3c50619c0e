//! Pages of marks.

use crate::common::Scratch;
use std::sync::Arc;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::{Fence, Leases, MARKS_MAX};
use tenure_redis::{RedisFence, Value};

/// Whatever a field is made of: no text, here.
#[tokio::test]
async fn a_damaged_mark_in_redis_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let damage = async |resource: &str| {
        let mut command = redis::cmd("HSET");
        command
            .arg(format!("{{{}}}:fence:{resource}", scratch.prefix))
            .arg("lease")
            .arg(b"\xff");
        let mut connection = scratch.connection().await;
        let _set: Value = command.query_async(&mut connection).await.expect("damaged");
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_redis_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let ask = async |command: &str, resource: &str, more: &[&str]| {
        let mut command = redis::cmd(command);
        command
            .arg(format!("{{{}}}:fence:{resource}", scratch.prefix))
            .arg(more);
        let mut connection = scratch.connection().await;
        let _done: Value = command.query_async(&mut connection).await.expect("done");
    };
    let plant = async |resource: &str, number: i64| {
        ask("HSET", resource, &["token", &number.to_string()]).await;
    };
    let remove = async |resource: &str| ask("DEL", resource, &[]).await;
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_redis() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    leases_that_nobody_holds_bound_the_first_claim(&scratch.store().await, &fence).await;
}

#[tokio::test]
async fn marks_in_redis_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}

/// More than a page has room for are gone, and as many are there.
const MARKS: usize = 2 * MARKS_MAX + 3;

/// What was removed must not make a page look as if it were the last.
#[tokio::test]
async fn removed_mark_of_redis_hides_none_of_the_others() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let mut making = redis::pipe();
    for number in 0..MARKS {
        let index = format!("{{{}}}:fences", scratch.prefix);
        making.cmd("ZADD").arg(index).arg(0).arg(format!("r{number:05}"));
        // The first are many, and one of the last.
        if number > MARKS_MAX && number != MARKS - 2 {
            let mark = format!("{{{}}}:fence:r{number:05}", scratch.prefix);
            making.cmd("HSET").arg(mark).arg(&["lease", "job", "token", "7"]);
        }
    }
    let mut connection = scratch.connection().await;
    making
        .query_async::<()>(&mut connection)
        .await
        .expect("the test can ask");
    let (mut shown, mut after, mut is_first) = (Vec::new(), None, true);
    while std::mem::take(&mut is_first) || after.is_some() {
        let page = fence.marks(after.as_ref()).await.expect("a page");
        let marks = page
            .marks
            .iter()
            .map(|listed| listed.understood().expect("a mark"));
        shown.extend(marks.map(|mark| mark.resource.to_string()));
        after = page.next;
    }
    let there = (MARKS_MAX + 1..MARKS).filter(|number| *number != MARKS - 2);
    assert_eq!(
        shown,
        there.map(|number| format!("r{number:05}")).collect::<Vec<_>>()
    );
}
