//! What a watch tells of records that it cannot read.

use crate::common::{Scratch, key, name, request, seconds, take};
use serde_json::json;
use std::time::Duration;
use tenure_core::{Change, LeaseStore, Scope, WatchEvent};

const PATIENCE: Duration = Duration::from_secs(20);

/// As those of a later Tenure are, which renews them in each beat: all who wait for any lease would look each time.
#[tokio::test]
async fn record_that_cannot_be_read_wakes_those_who_watch_once_and_not_with_each_renewal() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let beneath = scratch.beneath().await;
    let everything = Scope::Prefix(String::new());
    let mut watch = store.watch(&everything).await.expect("a watch");
    for renewals in 0..3 {
        let record = json!({ "form": 2, "renewals": renewals });
        beneath
            .put(&key("later"), record.to_string().as_bytes(), &[])
            .await;
    }
    let asked = request("other", "a", seconds(60));
    let token = take(&store, &asked).await.token;
    beneath.put(&key("later"), b"", &[("KV-Operation", "DEL")]).await;
    let mut told = Vec::new();
    while told.len() < 3 {
        let event = tokio::time::timeout(PATIENCE, watch.next()).await;
        told.push(event.expect("it is told").expect("the watch goes on"));
    }
    let changed = |lease: &str, change, token| WatchEvent::Changed {
        name: name(lease),
        change,
        token,
    };
    let taken = changed("other", Change::Taken, Some(token));
    let vacated = changed("later", Change::Vacated, None);
    assert_eq!(told, [WatchEvent::Gap, taken, vacated]);
}
