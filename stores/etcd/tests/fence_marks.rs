//! Pages of marks.

use crate::common::{Scratch, put, shared};
use std::sync::Arc;
use tenure_conformance::marks::{a_damaged_mark_hides_no_other, marks_are_in_the_order_of_their_resources};
use tenure_etcd::EtcdFence;

#[tokio::test]
async fn a_damaged_mark_in_etcd_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url()).await.expect("a fence");
    let etcd = shared().await;
    let damage =
        async |resource: &str| put(etcd, 0, &format!("{}/fence/{resource}", scratch.prefix), "green");
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn marks_in_etcd_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url()).await.expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}
