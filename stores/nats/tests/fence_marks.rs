//! Pages of marks.

use crate::common::Scratch;
use serde_json::json;
use tenure_core::{Fence, MARKS_MAX};
use tenure_nats::NatsFence;

/// A page that is not full is the last one: what was removed must not make it look so.
#[tokio::test]
async fn removed_mark_of_nats_hides_none_of_the_others() {
    let scratch = Scratch::new().await;
    let fence = NatsFence::connect(&scratch.store_url()).await.expect("a fence");
    let beneath = scratch.beneath().await;
    let key = |number: usize| format!("tenure-fence.r{number:05}");
    let mark = json!({ "form": 1, "lease": "job", "token": 7 }).to_string();
    for number in 0..=MARKS_MAX {
        beneath.put(&key(number), mark.as_bytes(), &[]).await;
    }
    beneath.put(&key(0), b"", &[("KV-Operation", "DEL")]).await;
    let page = fence.marks(None).await.expect("a page");
    assert_eq!(page.len(), MARKS_MAX);
    let last = page.last().expect("a mark");
    assert_eq!(last.resource.as_str(), format!("r{MARKS_MAX:05}"));
    let next = fence.marks(Some(&last.resource)).await.expect("a page");
    assert_eq!(next, []);
}
