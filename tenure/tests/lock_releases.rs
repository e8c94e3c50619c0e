//! Many guards that go together, beside locks that are kept.

use crate::harness::soon;
use mongodb::bson::{Document, doc};
use std::sync::Arc;
use std::time::Duration;
use tenure::mongodb::MongoStore;
use tenure::{Event, Lock, LockManager, LockTimingOptions};
use tenure_testkit::{ReplicaSet, Size, eventually_async};
use tokio::sync::broadcast::Receiver;
use tokio::task::JoinSet;

/// So many are released in a few seconds, and as many requests at once would take every connection for longer
/// than the ttl.
const DROPPED: u64 = 2_000;
const KEPT: u64 = 200;
const TTL: Duration = Duration::from_secs(15);

async fn take(manager: &Arc<LockManager>, kind: &str, locks: u64) -> Vec<Lock> {
    let mut taking = JoinSet::new();
    for number in 0..locks {
        let (manager, name) = (Arc::clone(manager), format!("{kind}/{number}"));
        taking.spawn(async move { manager.lock(name).await.unwrap() });
    }
    taking.join_all().await
}

/// How many extensions have failed meanwhile. The channel keeps the latest events; those it has dropped count
/// as none.
fn failures(events: &mut Receiver<Event>) -> usize {
    use tokio::sync::broadcast::error::TryRecvError;
    let mut failed = 0;
    loop {
        match events.try_recv() {
            Ok(Event::RenewalFailed { .. }) => failed += 1,
            Ok(_) | Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return failed,
        }
    }
}

#[tokio::test]
async fn thousands_dropped_at_once_are_given_back_and_cost_no_lock_that_is_kept() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let store = soon("connecting", MongoStore::connect(&set.uri())).await.unwrap();
    let timing = LockTimingOptions::new(TTL).check().unwrap();
    let manager = LockManager::builder(Arc::new(store)).timing(timing);
    let manager = Arc::new(manager.build().unwrap());
    let dropped = take(&manager, "dropped", DROPPED).await;
    let kept = take(&manager, "kept", KEPT).await;
    let mut events = manager.events();
    drop(dropped);
    let client = mongodb::Client::with_uri_str(set.uri()).await.unwrap();
    let leases = client.database("tenure").collection::<Document>("job_leases");
    let leases = &leases;
    let mut failed = 0;
    // Not what has only expired, as on a slow machine a part does before its turn comes. Of requests that are
    // all under way at once nearly none is answered in time.
    eventually_async(2 * TTL, "most that were dropped are given back", || {
        failed += failures(&mut events);
        async move {
            let released = doc! { "_id": { "$regex": "^dropped/" }, "released": { "$type": "object" } };
            leases.count_documents(released).await.unwrap() > DROPPED / 2
        }
    })
    .await;
    // What has starved is lost by then.
    tokio::time::sleep(TTL / 2).await;
    failed += failures(&mut events);
    let lost: Vec<String> = kept
        .iter()
        .filter_map(|lock| Some(lock.check().err()?.to_string()))
        .collect();
    assert_eq!(lost, Vec::<String>::new(), "{failed} extensions failed");
}
