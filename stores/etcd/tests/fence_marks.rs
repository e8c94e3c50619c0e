//! Pages of marks.

use crate::common::{Scratch, name, put, remove, shared};
use std::sync::Arc;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::{Fence, FencingToken, Leases, ResourceName, Term};
use tenure_etcd::EtcdFence;
use tenure_testkit::FaultProxy;

#[tokio::test]
async fn a_damaged_mark_in_etcd_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let etcd = shared().await;
    let damage =
        async |resource: &str| put(etcd, 0, &format!("{}/fence/{resource}", scratch.prefix), "green");
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_etcd_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let etcd = shared().await;
    let key = |resource: &str| format!("{}/fence/{resource}", scratch.prefix);
    let plant = async |resource: &str, number: i64| {
        let mark = format!("{{\"lease\":\"nightly\",\"token\":{number}}}");
        put(etcd, 0, &key(resource), &mark);
    };
    let remove = async |resource: &str| {
        let key = key(resource);
        assert_eq!(remove(etcd, 0, &key, &format!("{key}\0")), 1);
    };
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_etcd() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    leases_that_nobody_holds_bound_the_first_claim(&scratch.store().await, &fence).await;
}

#[tokio::test]
async fn marks_in_etcd_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}

/// However many marks there are: one request for each would take as many round trips.
#[tokio::test]
async fn page_of_marks_in_etcd_takes_two_requests() {
    let etcd = shared().await;
    let proxy = FaultProxy::http2(etcd.address(0)).expect("a proxy");
    let scratch = Scratch::on(&format!("etcd://{}", proxy.address()));
    let fence = EtcdFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let resources: Vec<String> = (0..20).map(|number| format!("table-{number:02}")).collect();
    for resource in &resources {
        let term = Term::new(name("job"), FencingToken::new(7).expect("a token"));
        let resource = ResourceName::new(resource).expect("a resource");
        fence.claim(&resource, &term).await.expect("a claim");
    }
    for (resource, refused) in [
        ("table-00", 1),
        ("table-07", 3),
        ("table-19", 5),
        ("table-190", 7),
    ] {
        let count = format!("{{\"last\":6,\"refused\":{refused}}}");
        put(
            etcd,
            0,
            &format!("{}/refusals/{resource}", scratch.prefix),
            &count,
        );
    }
    let before = proxy.counts().requests;
    let marks = fence.marks(None).await.expect("a page").marks;
    assert_eq!(proxy.counts().requests - before, 2);
    let refused: Vec<(String, u64)> = marks
        .iter()
        .map(|listed| listed.understood().expect("a mark"))
        .map(|mark| (mark.resource.to_string(), mark.refused))
        .collect();
    let expected = resources.iter().map(|resource| {
        let refused = match resource.as_str() {
            "table-00" => 1,
            "table-07" => 3,
            "table-19" => 5,
            _ => 0,
        };
        (resource.clone(), refused)
    });
    assert_eq!(refused, expected.collect::<Vec<_>>());
}
