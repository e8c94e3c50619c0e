//! Pages of marks.

use crate::common::Scratch;
use std::sync::Arc;
use tenure_conformance::marks::{a_damaged_mark_hides_no_other, marks_are_in_the_order_of_their_resources};
use tenure_redis::{RedisFence, Value};

/// Whatever a field is made of: no text, here.
#[tokio::test]
async fn a_damaged_mark_in_redis_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url()).await.expect("a fence");
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
async fn marks_in_redis_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = RedisFence::connect(&scratch.store_url()).await.expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}
