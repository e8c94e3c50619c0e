//! What a watch tells of records that it cannot read, and of those that were lost on the way.

use crate::common::{Beneath, Scratch, key, name, request, seconds, take};
use serde_json::json;
use std::time::Duration;
use tenure_core::{Change, Interest, LeaseStore, Scope, Watch, WatchEvent};

const PATIENCE: Duration = Duration::from_secs(20);

/// As those of a later Tenure are, which renews them in each beat: all who wait for any lease would look each
/// time.
#[tokio::test]
async fn record_that_cannot_be_read_wakes_those_who_watch_once_and_not_with_each_renewal() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let beneath = scratch.beneath().await;
    let everything = Scope::Prefix(String::new());
    let mut watch = store
        .watch(&everything, Interest::Everything)
        .await
        .expect("a watch");
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

/// More messages than may wait in the driver and in the store: the rest are lost.
const FLOOD: usize = 12_000;

/// What the first flood is given to come, and the last, where a machine is so slow that nothing was lost.
const FLOOD_COMES_WITHIN: Duration = Duration::from_secs(1);
const FLOOD_COMES_WITHIN_MAX: Duration = Duration::from_secs(16);

/// Nobody reads meanwhile. Each has a key of its own, as the servers tell only of what is still there.
async fn flood(beneath: &Beneath, record: &[u8], comes_within: Duration) {
    for number in 0..FLOOD {
        beneath.publish(&key(&format!("job/{number}")), record).await;
    }
    beneath.flush().await;
    // Until they have come.
    tokio::time::sleep(comes_within).await;
}

/// Whether it is told that some are missing.
async fn gap(watch: &mut Box<dyn Watch>) -> bool {
    let told = async { while watch.next().await.expect("the watch goes on") != WatchEvent::Gap {} };
    tokio::time::timeout(PATIENCE, told).await.is_ok()
}

/// What was lost may be the very release that somebody waits for.
#[tokio::test]
async fn messages_that_a_slow_reader_has_missed_are_told_as_a_gap() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let asked = request("job", "a", seconds(60));
    take(&store, &asked).await;
    let beneath = scratch.beneath().await;
    let (_number, record) = beneath.last(&key("job")).await.expect("the record");
    // The last ones, after which there is silence. Each time with another watch: what comes after is not to
    // tell of them.
    let mut comes_within = FLOOD_COMES_WITHIN;
    let mut watch = loop {
        let scope = Scope::Prefix("job".to_owned());
        let mut watch = store.watch(&scope, Interest::Everything).await.expect("a watch");
        flood(&beneath, &record, comes_within).await;
        if gap(&mut watch).await {
            break watch;
        }
        comes_within *= 2;
        assert!(
            comes_within <= FLOOD_COMES_WITHIN_MAX,
            "that the last are missing is not told"
        );
    };
    // Some in the middle: others come before there is silence.
    loop {
        flood(&beneath, &record, comes_within).await;
        let more = async {
            loop {
                beneath.publish(&key("job"), &record).await;
                beneath.flush().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let is_told = tokio::select! {
            is_told = gap(&mut watch) => is_told,
            () = more => unreachable!("it never ends"),
        };
        if is_told {
            break;
        }
        comes_within *= 2;
        assert!(
            comes_within <= FLOOD_COMES_WITHIN_MAX,
            "that some are missing is not told"
        );
    }
}
