//! Cleaning up after days, which only records that are made to look old have seen; the rest is in the
//! conformance suite.

use crate::common::{Scratch, giving_back, name, request, seconds, take, with_database};
use mongodb::bson::{Bson, DateTime, doc};
use std::time::Duration;
use tenure_conformance::asking::unused_for_a_day;
use tenure_core::{FencingToken, LeasePurge, LeaseStore, Purge, Purged, Purging};
use tenure_mongodb::MongoStore;
use tenure_testkit::{FaultProxy, ReplicaSet, RequestFault, Size, eventually_async};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn scratch() -> Scratch {
    Scratch::new(ReplicaSet::shared().await.uri())
}

async fn purge(store: &MongoStore, request: &Purge) -> Purged {
    store.purge(request).await.expect("a clean-up")
}

async fn released(store: &MongoStore, lease: &str) -> FencingToken {
    let asked = request(lease, "holder", seconds(60));
    let token = take(store, &asked).await.token;
    let answer = store.release(&[giving_back(&asked, token)]).await.remove(0);
    answer.expect("a release");
    token
}

/// Makes records look as if they had ended so long ago.
async fn age(scratch: &Scratch, names: &[&str], by: Duration) {
    let ended = DateTime::from_millis(
        DateTime::now().timestamp_millis() - i64::try_from(by.as_millis()).expect("days"),
    );
    let names: Vec<Bson> = names.iter().map(|name| (*name).into()).collect();
    let updated = scratch
        .leases()
        .await
        .update_many(
            doc! { "_id": { "$in": names } },
            doc! { "$set": { "expiresAt": ended, "generation": ended.timestamp_millis() } },
        )
        .await;
    updated.expect("the test can write");
}

#[tokio::test]
async fn what_nobody_has_used_for_long_is_removed_and_the_next_token_is_greater() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let old = released(&store, "old").await;
    let young = released(&store, "young").await;
    take(&store, &request("dead", "holder", seconds(60))).await;
    take(&store, &request("held", "holder", seconds(60))).await;
    age(&scratch, &["old", "dead"], DAY * 2).await;
    let purged = purge(&store, &unused_for_a_day(Purging::Removes)).await;
    assert_eq!(
        (purged.unused, purged.removed, purged.next),
        (vec![name("dead"), name("old")], 2, None)
    );
    assert_eq!(store.get(&name("old")).await, Ok(None));
    let kept = store
        .get(&name("young"))
        .await
        .expect("a read")
        .expect("the record");
    assert_eq!(kept.token, young);
    let again = take(&store, &request("old", "next", seconds(60))).await;
    assert!(again.token > old, "{} after {old}", again.token);
}

/// A clock that is set back a little afterwards, or another router's, would let the next token fall.
#[tokio::test]
async fn record_of_mongodb_whose_token_the_clock_has_just_passed_is_kept() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    for lease in ["passed", "past"] {
        released(&store, lease).await;
    }
    age(&scratch, &["passed", "past"], DAY * 2).await;
    let token = DateTime::now().timestamp_millis() - 1_000;
    let leases = scratch.leases().await;
    let updated = leases.update_one(doc! { "_id": "passed" }, doc! { "$set": { "generation": token } });
    assert_eq!(updated.await.expect("the test can write").modified_count, 1);
    let purged = purge(&store, &unused_for_a_day(Purging::Removes)).await;
    assert_eq!((purged.unused, purged.removed), (vec![name("past")], 1));
}

#[tokio::test]
async fn the_token_after_a_record_that_the_server_has_removed_is_greater() {
    let set = ReplicaSet::with_fail_points(Size::One).await.expect("a set");
    let scratch = Scratch::new(set.uri());
    let store = MongoStore::connect(&scratch.url("purgeAfter=1d"))
        .await
        .expect("it connects");
    let old = released(&store, "old").await;
    let held = request("held", "holder", seconds(60));
    take(&store, &held).await;
    let leases = scratch.leases().await;
    let at_once = doc! { "$set": { "purgeAt": DateTime::now() } };
    let due = leases.update_one(doc! { "_id": "old" }, at_once).await;
    assert_eq!(due.expect("the test can write").modified_count, 1);
    eventually_async(Duration::from_secs(60), "the removal", || async {
        match store.get(&name("old")).await.expect("a read") {
            None => Ok(()),
            Some(lease) => Err(format!("{lease:?}")),
        }
    })
    .await;
    let again = take(&store, &request("old", "next", seconds(60))).await;
    assert!(again.token > old, "{} after {old}", again.token);
    assert_eq!(again.terms, 1, "the record is new");
    assert!(store.get(&held.name).await.expect("a read").is_some());
}

#[tokio::test]
async fn ten_ttls_count_at_least_whatever_is_asked_for() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    released(&store, "job").await;
    let mut at_once = unused_for_a_day(Purging::Removes);
    at_once.unused_for = Duration::ZERO;
    age(&scratch, &["job"], Duration::from_secs(400)).await;
    assert_eq!(purge(&store, &at_once).await.unused, vec![]);
    age(&scratch, &["job"], Duration::from_secs(601)).await;
    assert_eq!(purge(&store, &at_once).await.unused, vec![name("job")]);
}

#[tokio::test]
async fn a_token_ahead_of_the_clock_and_what_cannot_be_understood_are_kept() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    for lease in ["ahead", "damaged"] {
        released(&store, lease).await;
    }
    age(&scratch, &["ahead", "damaged"], DAY * 2).await;
    let leases = scratch.leases().await;
    let ahead = doc! { "$set": { "generation": 200_000_000_000_000_i64, "released.generation": 200_000_000_000_000_i64 } };
    let damage = doc! { "$set": { "note": 7 } };
    for (key, change) in [("ahead", ahead), ("damaged", damage)] {
        let changed = leases.update_one(doc! { "_id": key }, change).await;
        assert_eq!(changed.expect("the test can write").modified_count, 1);
    }
    leases
        .insert_one(doc! { "_id": { "no": "name" }, "generation": "text", "expiresAt": 7 })
        .await
        .expect("the test can write");
    let purged = purge(&store, &unused_for_a_day(Purging::Removes)).await;
    assert_eq!((purged.unused, purged.removed), (vec![], 0));
    assert_eq!(
        leases
            .count_documents(doc! { "_id": { "$ne": { "tenure": "store" } } })
            .await
            .expect("a count"),
        3
    );
}

/// Somebody may take a lease between the look and the removal: here the removal comes once more when it was
/// taken.
#[tokio::test]
async fn what_was_taken_since_it_was_looked_at_is_not_removed() {
    let set = ReplicaSet::shared().await;
    let primary = set.primary().await.expect("a primary");
    let proxy = FaultProxy::mongodb(set.address(primary)).expect("a proxy");
    let scratch = scratch().await;
    let store = scratch.store().await;
    let cleaner = MongoStore::connect(&with_database(&proxy.mongodb_uri(), &scratch.database, ""))
        .await
        .expect("connects through the proxy");
    released(&store, "job").await;
    age(&scratch, &["job"], DAY * 2).await;
    let later = RequestFault::DuplicateLater(Duration::from_millis(500));
    proxy.next_commands(1, "delete", later);
    assert_eq!(
        purge(&cleaner, &unused_for_a_day(Purging::Removes)).await.removed,
        1
    );
    let token = take(&store, &request("job", "next", seconds(60))).await.token;
    eventually_async(Duration::from_secs(60), "the removal once more", || async {
        (proxy.counts().duplicated > 0).then_some(()).ok_or("not yet")
    })
    .await;
    let lease = store.get(&name("job")).await.expect("a read");
    assert_eq!(lease.map(|lease| lease.token), Some(token));
}
