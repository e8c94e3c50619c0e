//! Records of a form that this Tenure does not know.

use crate::common::{Scratch, key, request, seconds, take};
use serde_json::Value;
use tenure_core::{Fault, LeaseStore};

/// Of a later Tenure: what its fields mean is not known, though each has a value that would fit.
#[tokio::test]
async fn record_of_nats_of_another_form_is_left_alone() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(60));
    take(&store, &asked).await;
    let beneath = scratch.beneath().await;
    let (_, value) = beneath.last(&key("job")).await.expect("a record");
    let mut record: Value = serde_json::from_slice(&value).expect("JSON");
    record["form"] = 2.into();
    beneath.put(&key("job"), record.to_string().as_bytes(), &[]).await;
    let before = beneath.last(&key("job")).await;
    let looked = store.get(&asked.name).await.map(drop);
    let taken = store.acquire(&asked).await.map(drop);
    for refused in [looked, taken] {
        let error = refused.expect_err("a form that is not known");
        assert_eq!(error.fault, Fault::Unreadable, "{error}");
    }
    assert_eq!(beneath.last(&key("job")).await, before);
}
