//! Indexes of others on the collection of leases.

use crate::common::{Scratch, persist, request, seconds, take, who_may};
use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;
use std::time::Duration;
use tenure_core::{Certainty, Fault, Finding, LeaseStore, Verdict};
use tenure_mongodb::MongoStore;
use tenure_testkit::{ReplicaSet, Size, eventually_async};

async fn with_index(keys: Document, options: IndexOptions) -> Scratch {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let index = IndexModel::builder().keys(keys).options(options).build();
    scratch
        .leases()
        .await
        .create_index(index)
        .await
        .expect("an index");
    scratch
}

async fn finding(store: &MongoStore, subject: &str) -> Finding {
    let findings = store.examine().await.expect("an examination");
    let found = findings.into_iter().find(|finding| finding.subject == subject);
    found.expect("it is examined")
}

/// Nothing comes and goes then: no second lease of that holder is ever granted.
#[tokio::test]
async fn unique_index_that_refuses_a_lease_is_named_with_the_way_out() {
    let unique = IndexOptions::builder().unique(true).build();
    let scratch = with_index(doc! { "owner": 1 }, unique).await;
    let store = scratch.store().await;
    take(&store, &request("one", "holder", seconds(60))).await;
    let error = store
        .acquire(&request("another", "holder", seconds(60)))
        .await
        .expect_err("the index refuses it");
    assert_eq!(
        (error.fault, error.certainty),
        (Fault::Invalid, Certainty::NotApplied),
        "{error}"
    );
    let way_out = "dropIndex(\"owner_1\")";
    assert!(error.message.contains(way_out), "{error}");
    let unique = finding(&store, "unique index").await;
    assert_eq!(unique.verdict, Verdict::Bad, "{unique:?}");
    assert!(
        unique
            .repair
            .as_deref()
            .is_some_and(|repair| repair.contains(way_out)),
        "{unique:?}"
    );
}

#[tokio::test]
async fn what_nobody_uses_is_removed_by_an_index_where_that_is_asked_for_and_only_there() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    for (options, is_made) in [("", false), ("purgeAfter=30d", true)] {
        let store = MongoStore::connect(&scratch.url(options))
            .await
            .expect("it connects");
        take(&store, &request(&format!("job/{is_made}"), "holder", seconds(60))).await;
        let mut indexes = scratch.leases().await.list_indexes().await.expect("a list");
        let mut removals = Vec::new();
        while indexes.advance().await.expect("an index") {
            let index = indexes.deserialize_current().expect("an index");
            if let Some(wait) = index.options.and_then(|options| options.expire_after) {
                removals.push((index.keys, wait));
            }
        }
        let ours = is_made.then(|| (doc! { "purgeAt": 1 }, Duration::ZERO));
        assert_eq!(removals, Vec::from_iter(ours), "{options}");
    }
}

/// Whoever made it before, with another wait or to sort by it: a service must not stop for it.
#[tokio::test]
async fn index_on_purge_at_that_is_there_stops_nobody() {
    let an_hour_later = IndexOptions::builder()
        .expire_after(Duration::from_secs(3600))
        .build();
    let plain = IndexOptions::builder().build();
    for (options, verdict) in [(an_hour_later, Verdict::Good), (plain, Verdict::Warning)] {
        let scratch = with_index(doc! { "purgeAt": 1 }, options).await;
        let store = MongoStore::connect(&scratch.url("purgeAfter=30d"))
            .await
            .expect("it connects");
        take(&store, &request("job", "holder", seconds(60))).await;
        let told = finding(&store, "ttl index").await;
        assert_eq!(told.verdict, verdict, "{told:?}");
        let repair = told.repair.unwrap_or_default();
        assert_eq!(
            repair.contains("dropIndex(\"purgeAt_1\")"),
            verdict == Verdict::Warning,
            "{repair}"
        );
    }
}

/// In a collection that another program keeps records in, too: it deletes none of ours, and is not ours to
/// remove.
#[tokio::test]
async fn ttl_index_by_a_field_that_no_lease_has_is_left_alone() {
    let at_once = IndexOptions::builder().expire_after(Duration::ZERO).build();
    let scratch = with_index(doc! { "theirs": 1 }, at_once.clone()).await;
    let told = finding(&scratch.store().await, "ttl index").await;
    assert_eq!(told.verdict, Verdict::Good, "{told:?}");
    for date in ["lastRenewedAt", "released.at"] {
        let scratch = with_index(doc! { date: 1 }, at_once.clone()).await;
        let told = finding(&scratch.store().await, "ttl index").await;
        assert_eq!(told.verdict, Verdict::Bad, "{told:?}");
    }
}

/// None of them refuses a lease: our records lack the field, or have a name of their own in it.
#[tokio::test]
async fn unique_index_that_refuses_no_lease_is_not_told_of() {
    let unique = || IndexOptions::builder().unique(true);
    for (keys, options) in [
        (doc! { "theirs": 1 }, unique().sparse(true).build()),
        (
            doc! { "theirs": 1 },
            unique()
                .partial_filter_expression(doc! { "theirs": { "$exists": true } })
                .build(),
        ),
        (doc! { "owner": 1, "_id": 1 }, unique().build()),
    ] {
        let scratch = with_index(keys.clone(), options).await;
        let store = scratch.store().await;
        for lease in ["one", "another"] {
            take(&store, &request(lease, "holder", seconds(60))).await;
        }
        let findings = store.examine().await.expect("an examination");
        let told = findings.iter().find(|finding| finding.subject == "unique index");
        assert_eq!(told, None, "{keys}");
    }
}

/// By default the server waits until every member has built it: whoever waits for a lease would wait for the
/// member, and leave a build behind with each try.
#[tokio::test]
async fn an_index_that_is_asked_for_while_a_member_is_down_keeps_nobody_out() {
    let mut set = ReplicaSet::start(Size::Three).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let scratch = Scratch::new(set.uri());
    // Of a collection without records the index is made at once.
    let plain = scratch.store().await;
    persist(&plain, &request("another", "holder", seconds(60))).await;
    let primary = set.primary().await.expect("a primary");
    set.kill((primary + 1) % set.size());
    persist(&plain, &request("a third", "holder", seconds(60))).await;

    let url = scratch.url("purgeAfter=30d");
    // A machine that stands still may not let a majority build it in time: then the next one who connects
    // asks for it.
    let store = eventually_async(PATIENCE, "a store with its index", || async {
        let store = MongoStore::connect(&url)
            .await
            .map_err(|error| error.to_string())?;
        let mut indexes = scratch
            .leases()
            .await
            .list_indexes()
            .await
            .map_err(|error| error.to_string())?;
        while indexes.advance().await.map_err(|error| error.to_string())? {
            let index = indexes.deserialize_current().map_err(|error| error.to_string())?;
            if index.keys.contains_key("purgeAt") {
                return Ok(store);
            }
        }
        Err("it connects, and there is no index".to_owned())
    })
    .await;
    persist(&store, &request("job", "holder", seconds(60))).await;

    let admin = scratch.client().await.database("admin");
    let building = doc! { "$match": { "command.createIndexes": "job_leases" } };
    let looked_for = vec![doc! { "$currentOp": { "allUsers": true } }, building];
    eventually_async(PATIENCE, "no build that nobody waits for", || async {
        let mut found = admin
            .aggregate(looked_for.clone())
            .await
            .map_err(|error| error.to_string())?;
        match found.advance().await.map_err(|error| error.to_string())? {
            true => Err("one is under way".to_owned()),
            false => Ok(()),
        }
    })
    .await;
}

/// No lease is in danger without it.
#[tokio::test]
async fn who_may_not_make_the_index_leads_and_is_told_by_the_examination() {
    let set = ReplicaSet::with_auth(Size::One).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let rights = ["find", "insert", "update", "changeStream", "listIndexes"];
    let url = who_may(&set, "secret", &rights).await + "&purgeAfter=30d";
    let store = MongoStore::connect(&url).await.expect("connects");
    take(&store, &request("job", "holder", seconds(60))).await;
    let privileges = store.examine().await.expect("an examination");
    let lacking = privileges
        .iter()
        .find(|finding| finding.subject == "privileges" && finding.verdict == Verdict::Warning);
    let lacking = lacking.expect("it is told");
    assert!(lacking.detail.contains("createIndex"), "{lacking:?}");
    assert_eq!(finding(&store, "ttl index").await.verdict, Verdict::Warning);
}

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(60);
