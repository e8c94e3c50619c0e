//! What is cleaned up where a bucket keeps more than the last revision, and how long looking at the servers
//! takes.

use crate::common::{Scratch, giving_back, request, seconds, shared, take};
use serde_json::json;
use std::time::Duration;
use tenure_core::{
    Change, Durability, Interest, LeasePurge, LeaseStore, PURGE_TTLS_MIN, Purge, Purging, Released, Scope,
    WatchEvent,
};
use tenure_testkit::{FaultProxy, RequestFault, eventually_async};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Most that a URL may name.
const MONITORS: usize = 9;
const TRIES_MAX: usize = 20;

fn everything() -> Purge {
    Purge {
        prefix: String::new(),
        after: None,
        limit: 10,
        unused_for: Duration::ZERO,
        purging: Purging::Removes,
    }
}

#[tokio::test]
async fn record_with_earlier_revisions_counts_as_one_that_was_removed() {
    let scratch = Scratch::new().await;
    scratch
        .beneath()
        .await
        .make(json!({ "max_msgs_per_subject": 5 }))
        .await;
    let store = scratch.store().await;
    let asked = request("unused", "a", store.traits().ttl_min);
    let token = take(&store, &asked).await.token;
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    tokio::time::sleep(asked.ttl.duration() * (PURGE_TTLS_MIN + 1)).await;
    let purged = store.purge(&everything()).await.expect("it may");
    assert_eq!((purged.unused, purged.removed), (vec![asked.name.clone()], 1));
    assert_eq!(store.get(&asked.name).await, Ok(None));
}

/// Somebody may take a lease between the look and the removal: here the removal comes once more when it was
/// taken.
#[tokio::test]
async fn record_that_was_taken_since_it_was_looked_at_is_not_removed() {
    let scratch = Scratch::new().await;
    let store = scratch.store().await;
    let proxy = FaultProxy::nats(shared().await.address()).expect("a proxy");
    let behind = Scratch {
        url: format!("nats://{}", proxy.address()),
        bucket: scratch.bucket.clone(),
    };
    let cleaner = behind.store().await;
    let asked = request("job", "a", store.traits().ttl_min);
    let token = take(&store, &asked).await.token;
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    tokio::time::sleep(asked.ttl.duration() * (PURGE_TTLS_MIN + 1)).await;
    let later = RequestFault::DuplicateLater(Duration::from_millis(500));
    proxy.next_commands(1, "STREAM.PURGE", later);
    assert_eq!(cleaner.purge(&everything()).await.expect("it may").removed, 1);
    let token = take(&store, &request("job", "next", seconds(60))).await.token;
    eventually_async(Duration::from_secs(60), "the removal once more", || async {
        (proxy.counts().duplicated > 0).then_some(()).ok_or("not yet")
    })
    .await;
    let lease = store.get(&asked.name).await.expect("a read");
    assert_eq!(lease.map(|lease| lease.token), Some(token));
}

/// Where a bucket is told to (`nats kv add --marker-ttl`), the servers leave a marker of their own in place
/// of what has become too old: of all that nobody renewed while somebody had set an age.
#[tokio::test]
async fn record_in_whose_place_the_servers_left_a_marker_is_gone() {
    let scratch = Scratch::new().await;
    let beneath = scratch.beneath().await;
    let an_hour = 3_600_000_000_000_u64;
    let made = json!({ "allow_msg_ttl": true, "subject_delete_marker_ttl": an_hour });
    beneath.make(made).await;
    let store = scratch.store().await;
    let asked = request("job", "a", store.traits().ttl_min);
    let token = take(&store, &asked).await.token;
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .expect("a watch");
    let edit = format!("STREAM.UPDATE.{}", scratch.stream());
    let mut config = beneath.info().await["config"].clone();
    // It is set back before the marker itself is of that age.
    for age in [10_000_000_000_u64, 0] {
        config["max_age"] = age.into();
        config["duplicate_window"] = 1_000_000_000_u64.into();
        let edited = beneath.call(&edit, config.clone()).await;
        assert_eq!(edited.get("error"), None, "{edited}");
        eventually_async(Duration::from_secs(60), "a marker", || async {
            let last = beneath.last("lease.job").await;
            last.is_some_and(|(_number, value)| value.is_empty())
        })
        .await;
    }
    let told = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
    let vacated = WatchEvent::Changed {
        name: asked.name.clone(),
        change: Change::Vacated,
        token: None,
    };
    assert_eq!(told, Ok(Ok(vacated)), "and no gap");
    assert_eq!(store.get(&asked.name).await, Ok(None));
    let next = take(&store, &request("job", "b", asked.ttl)).await;
    assert!(next.token > token);
}

/// All are asked before the first one answers. On a loaded machine that may be too late for its patience,
/// again and again.
#[tokio::test]
async fn servers_are_asked_together_what_they_are_set_to() {
    let scratch = Scratch::new().await;
    for _try in 0..TRIES_MAX {
        let monitors = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = monitors.local_addr().expect("an address").to_string();
        let answering = tokio::spawn(async move {
            let mut asked = Vec::new();
            while asked.len() < MONITORS {
                asked.push(monitors.accept().await.expect("a connection").0);
            }
            let config = json!({ "sync_always": true });
            let told =
                json!({ "server_name": "scratch", "version": "2.15.0", "jetstream": { "config": config } });
            let answer = format!("HTTP/1.0 200 OK\r\n\r\n{told}");
            // What is closed with something unread is reset, and the answer lost with it.
            drop(asked[0].read(&mut [0; 1_024]).await);
            drop(asked[0].write_all(answer.as_bytes()).await);
        });
        let options = format!("?monitor={}", vec![address; MONITORS].join(","));
        let store = scratch.store_with(&options).await;
        answering.abort();
        if store.traits().durability == Durability::Safe {
            return;
        }
    }
    panic!("the first had been given up when the last was asked");
}
