//! Pages of marks.

use crate::common::Scratch;
use serde_json::json;
use std::sync::Arc;
use tenure_conformance::marks::{
    a_damaged_mark_hides_no_other, a_mark_beyond_the_last_token_is_told_with_the_way_out,
    leases_that_nobody_holds_bound_the_first_claim, marks_are_in_the_order_of_their_resources,
};
use tenure_core::{Fence, Leases, ListedMark, MARKS_MAX};
use tenure_nats::NatsFence;

/// What was removed must not make a page look as if it were full, or the last.
#[tokio::test]
async fn removed_mark_of_nats_hides_none_of_the_others() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let beneath = scratch.beneath().await;
    let key = |number: usize| format!("tenure-fence.r{number:05}");
    let mark = json!({ "form": 1, "lease": "job", "token": 7 }).to_string();
    for number in 0..=MARKS_MAX {
        beneath.put(&key(number), mark.as_bytes(), &[]).await;
    }
    beneath.put(&key(0), b"", &[("KV-Operation", "DEL")]).await;
    let page = fence.marks(None).await.expect("a page");
    assert_eq!((page.marks.len(), page.next), (MARKS_MAX, None));
    let last = page
        .marks
        .last()
        .and_then(ListedMark::understood)
        .expect("a mark");
    assert_eq!(last.resource.as_str(), format!("r{MARKS_MAX:05}"));
}

#[tokio::test]
async fn a_damaged_mark_in_nats_hides_no_other() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let beneath = scratch.beneath().await;
    let damage = async |resource: &str| {
        beneath
            .put(&format!("tenure-fence.{resource}"), b"green", &[])
            .await;
    };
    a_damaged_mark_hides_no_other(Arc::new(fence), damage).await;
}

#[tokio::test]
async fn a_mark_in_nats_beyond_the_last_token_is_told_with_the_way_out() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let beneath = scratch.beneath().await;
    let key = |resource: &str| format!("tenure-fence.{resource}");
    let plant = async |resource: &str, number: i64| {
        let mark = json!({ "form": 1, "lease": "nightly", "token": number }).to_string();
        beneath.put(&key(resource), mark.as_bytes(), &[]).await;
    };
    let remove = async |resource: &str| {
        beneath.put(&key(resource), b"", &[("KV-Operation", "DEL")]).await;
    };
    a_mark_beyond_the_last_token_is_told_with_the_way_out(&fence, plant, remove).await;
}

/// Another program's key there.
#[tokio::test]
async fn a_key_that_no_resource_has_is_listed_in_nats_and_hides_no_mark() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    let beneath = scratch.beneath().await;
    let mark = json!({ "form": 1, "lease": "job", "token": 7 }).to_string();
    for key in ["tenure-fence.a", "tenure-fence.b.c", "tenure-fence.d"] {
        beneath.put(key, mark.as_bytes(), &[]).await;
    }
    let page = fence.marks(None).await.expect("a page");
    let shown = page.marks.iter().map(|listed| match listed {
        ListedMark::Mark(mark) => mark.resource.to_string(),
        ListedMark::Unreadable { key, .. } => format!("!{key}"),
    });
    assert_eq!(shown.collect::<Vec<_>>(), ["a", "!tenure-fence.b.c", "d"]);
}

#[tokio::test]
async fn leases_that_nobody_holds_bound_the_first_claim_in_nats() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    leases_that_nobody_holds_bound_the_first_claim(&scratch.store().await, &fence).await;
}

#[tokio::test]
async fn marks_in_nats_are_in_the_order_of_their_resources() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url(), Leases::Here)
        .await
        .expect("a fence");
    marks_are_in_the_order_of_their_resources(&fence).await;
}
