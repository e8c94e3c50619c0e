//! A collection that is dropped, or emptied, under those who lead by it. Its mark goes with it: who learned
//! that at the next new connection would lead until the next fail-over, and never again.

use crate::common::{Scratch, giving_back, name, persist, raw, renewal, request, seconds};
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure_core::{
    Fault, Finding, Interest, LeaseStore, Released, Renew, Renewed, Scope, StoreError, Verdict,
};
use tenure_mongodb::MongoStore;
use tenure_testkit::ReplicaSet;

/// Answers come within this, on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// A store that nobody has asked anything, and its collection by another hand.
async fn store() -> (Scratch, MongoStore, Collection<Document>) {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let (store, leases) = (scratch.store().await, scratch.leases().await);
    (scratch, store, leases)
}

/// Terms of these names, and what renews each.
async fn terms<const COUNT: usize>(store: &MongoStore, names: [&str; COUNT]) -> Vec<Renew> {
    let mut beat = Vec::new();
    for name in names {
        let asked = request(name, "holder", seconds(300));
        let granted = persist(store, &asked).await;
        beat.push(renewal(&asked, granted.token));
    }
    beat
}

fn assert_is_told<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.expect_err("its mark is gone");
    assert_eq!(error.fault, Fault::AnotherStore, "{error}");
    assert!(error.message.contains("start this process anew"), "{error}");
}

#[tokio::test]
async fn collection_that_is_dropped_is_told_at_once_to_leader_and_standby() {
    let (scratch, leader, leases) = store().await;
    let beat = terms(&leader, ["job"]).await;
    let standby = scratch.store().await;
    let scope = Scope::Name(name("job"));
    let mut watch = standby
        .watch(&scope, Interest::Everything)
        .await
        .expect("a watch");
    leases.drop().await.expect("dropped");
    let ended = async {
        loop {
            if let Err(error) = watch.next().await {
                break Err::<(), _>(error);
            }
        }
    };
    assert_is_told(tokio::time::timeout(SOON, ended).await.expect("an end in time"));
    assert_is_told(standby.acquire(&request("job", "standby", seconds(300))).await);
    assert_is_told(leader.renew(&beat).await.remove(0));
    assert_is_told(leader.acquire(&request("other", "holder", seconds(300))).await);
    assert_eq!(raw(&leases, "job").await, None, "it was made anew");
    // Whoever is started now goes by what is there.
    persist(&scratch.store().await, &request("job", "standby", seconds(300))).await;
    assert_is_told(leader.renew(&beat).await.remove(0));
}

/// No watch tells of it: all records are deleted, one by one.
#[tokio::test]
async fn collection_that_is_emptied_is_told_by_what_it_has_lost() {
    for way in ["renew one", "renew two", "release one", "release two"] {
        let (_scratch, store, leases) = store().await;
        let beat = terms(&store, ["job", "other job"]).await;
        leases.delete_many(doc! {}).await.expect("deleted");
        let count = if way.ends_with("one") { 1 } else { 2 };
        if way.starts_with("renew") {
            store
                .renew(&beat[..count])
                .await
                .into_iter()
                .for_each(assert_is_told);
        } else {
            let back: Vec<_> = beat[..count]
                .iter()
                .map(|renewal| tenure_core::Release {
                    name: renewal.name.clone(),
                    incarnation: renewal.incarnation,
                    token: renewal.token,
                    attempt: renewal.attempt,
                })
                .collect();
            store.release(&back).await.into_iter().for_each(assert_is_told);
        }
    }
}

/// A lock that this process has given back, and takes again.
#[tokio::test]
async fn lease_that_was_given_back_is_not_made_anew_where_the_collection_was_dropped() {
    let (_scratch, store, leases) = store().await;
    let asked = request("lock", "holder", seconds(300));
    let granted = persist(&store, &asked).await;
    let released = store
        .release(&[giving_back(&asked, granted.token)])
        .await
        .remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    leases.drop().await.expect("dropped");
    assert_is_told(store.acquire(&request("lock", "holder", seconds(300))).await);
    assert_eq!(raw(&leases, "lock").await, None, "it was made anew");
}

#[tokio::test]
async fn record_that_is_removed_alone_is_a_lost_term_and_no_lost_store() {
    let (_scratch, store, leases) = store().await;
    let beat = terms(&store, ["job", "other job"]).await;
    leases.delete_one(doc! { "_id": "job" }).await.expect("deleted");
    let renewed = store.renew(&beat).await;
    assert_eq!(renewed[0], Ok(Renewed::Lost(None)));
    assert!(matches!(renewed[1], Ok(Renewed::Extended { .. })), "{renewed:?}");
    persist(&store, &request("job", "holder", seconds(300))).await;
}

async fn examined(store: &MongoStore) -> Option<Finding> {
    let findings = store.examine().await.expect("an examination");
    findings.into_iter().find(|finding| finding.subject == "store")
}

#[tokio::test]
async fn leases_without_a_mark_are_told_by_the_examination() {
    let (scratch, store, leases) = store().await;
    assert_eq!(examined(&store).await, None, "there are no leases");
    let _beat = terms(&store, ["job"]).await;
    leases
        .delete_one(doc! { "_id": { "tenure": "store" } })
        .await
        .expect("deleted");
    let found = examined(&store).await.expect("a finding");
    assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
    let anew = scratch.store().await;
    persist(&anew, &request("other", "holder", seconds(300))).await;
    let found = examined(&anew).await.expect("a finding");
    assert_eq!(found.verdict, Verdict::Good, "{found:?}");
}

/// As one that was written after the README's record.
#[tokio::test]
async fn validator_that_takes_no_mark_keeps_nobody_out_and_is_told() {
    let (scratch, store, leases) = store().await;
    let client = scratch.client().await;
    client
        .database(&scratch.database)
        .create_collection(leases.name())
        .validator(doc! { "_id": { "$type": "string" } })
        .await
        .expect("made");
    let beat = terms(&store, ["job"]).await;
    assert!(
        matches!(store.renew(&beat).await.remove(0), Ok(Renewed::Extended { .. })),
        "it is led"
    );
    let found = examined(&store).await.expect("a finding");
    assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
    assert!(found.repair.is_some_and(|way| way.contains("validator")));
}
