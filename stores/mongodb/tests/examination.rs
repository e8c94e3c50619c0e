//! What an operator is told of a set, a collection and a user.

use crate::common::{Scratch, who_may};
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use std::time::Duration;
use tenure_core::{Certainty, Finding, LeaseStore, Verdict};
use tenure_mongodb::MongoStore;
use tenure_testkit::{ReplicaSet, Size, eventually_async};

fn of<'a>(findings: &'a [Finding], subject: &str) -> Vec<&'a Finding> {
    findings
        .iter()
        .filter(|finding| finding.subject == subject)
        .collect()
}

/// What is found, once this subject is told of so, and only so: on a machine that stands still a server may
/// be silent for a moment.
async fn found(store: &MongoStore, subject: &str, verdict: Verdict) -> Vec<Finding> {
    eventually_async(PATIENCE, subject, || async {
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        let about = of(&findings, subject);
        match about.iter().all(|finding| finding.verdict == verdict) && !about.is_empty() {
            true => Ok(findings),
            false => Err(format!("{findings:#?}")),
        }
    })
    .await
}

/// Until nothing is said of this subject.
async fn not_found(store: &MongoStore, subject: &str) {
    eventually_async(PATIENCE, subject, || async {
        let findings = store.examine().await.map_err(|error| error.to_string())?;
        match of(&findings, subject)[..] {
            [] => Ok(()),
            _ => Err(format!("{findings:#?}")),
        }
    })
    .await;
}

/// Long, as a loaded machine may need it.
const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn warned<'a>(findings: &'a [Finding], subject: &str) -> &'a Finding {
    let found = of(findings, subject)
        .into_iter()
        .find(|finding| finding.verdict == Verdict::Warning);
    found.unwrap_or_else(|| panic!("no warning of {subject}: {findings:#?}"))
}

#[tokio::test]
async fn a_validator_and_a_server_that_lets_everybody_in_are_told_of() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let database = scratch.client().await.database(&scratch.database);
    let validated = doc! { "create": "job_leases", "validator": { "note": "mine" } };
    database.run_command(validated).await.expect("a collection");
    let store = scratch.store().await;
    let findings = store.examine().await.expect("an examination");
    let collection = warned(&findings, "collection");
    assert!(collection.detail.contains("validator"), "{collection:?}");
    let repair = collection.repair.as_deref().unwrap_or_default();
    assert!(repair.contains("collMod: \"job_leases\""), "{repair}");
    let privileges = warned(&findings, "privileges");
    assert!(privileges.detail.contains("everybody"), "{privileges:?}");
}

/// Leases work without, so it is no more than a warning: of each right by its name.
#[tokio::test]
async fn rights_that_are_wanted_and_missing_are_named() {
    let set = ReplicaSet::with_auth(Size::One).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let url = who_may(&set, "secret", &["find", "insert", "update"]).await;
    let store = MongoStore::connect(&url).await.expect("connects");
    let findings = store.examine().await.expect("an examination");
    assert!(
        findings.iter().all(|finding| finding.verdict != Verdict::Bad),
        "{findings:#?}"
    );
    let privileges = warned(&findings, "privileges");
    for right in ["listIndexes", "changeStream"] {
        assert!(
            privileges.detail.contains(right),
            "{right} is not in: {privileges:?}"
        );
        let repair = privileges.repair.as_deref().unwrap_or_default();
        assert!(repair.contains(right), "{right} is not in: {repair}");
    }
    assert!(!privileges.detail.contains("createIndex"), "{privileges:?}");
    for subject in ["ttl index", "watch"] {
        warned(&findings, subject);
    }
}

/// As in another data centre, where the primary shall not be: it confirms writes like any other.
#[tokio::test]
async fn member_without_a_priority_holds_data_like_the_others() {
    let mut set = ReplicaSet::start(Size::Three).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    let primary = set.primary().await.expect("a primary");
    let number = (primary + 1) % set.size();
    let passive = set.address(number);
    let admin = scratch.client().await.database("admin");
    let told = admin
        .run_command(doc! { "replSetGetConfig": 1 })
        .await
        .expect("told");
    let mut config = told.get_document("config").expect("a configuration").clone();
    let version = config.get_i32("version").expect("a version");
    config.insert("version", version + 1);
    for member in config.get_array_mut("members").expect("members") {
        if let Bson::Document(member) = member
            && member.get_str("host").is_ok_and(|host| host == passive)
        {
            member.insert("priority", 0);
        }
    }
    admin
        .run_command(doc! { "replSetReconfig": config })
        .await
        .expect("reconfigured");
    eventually_async(Duration::from_secs(30), "the other configuration", || async {
        let hello = admin.run_command(doc! { "hello": 1 }).await.expect("told");
        hello
            .get_array("passives")
            .map(Vec::len)
            .map_err(|error| error.to_string())
    })
    .await;
    let findings = found(&store, "topology", Verdict::Good).await;
    let [topology] = of(&findings, "topology")[..] else {
        panic!("{findings:#?}");
    };
    assert!(topology.detail.contains("3 members with data"), "{topology:?}");
    not_found(&store, "members").await;
    set.kill(number);
    let findings = found(&store, "members", Verdict::Warning).await;
    let members = warned(&findings, "members");
    assert!(members.detail.contains(&passive), "{members:?}");
}

/// As one for reports: it is among those that a member shows, and confirms nothing.
#[tokio::test]
async fn member_without_a_vote_is_no_member_that_the_set_could_lose_another_for() {
    let set = ReplicaSet::start(Size::Three).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    found(&store, "topology", Verdict::Good).await;
    let admin = scratch.client().await.database("admin");
    let other = set.address((set.primary().await.expect("a primary") + 1) % set.size());
    eventually_async(PATIENCE, "another configuration", || async {
        let told = admin.run_command(doc! { "replSetGetConfig": 1 }).await;
        let told = told.map_err(|error| error.to_string())?;
        let mut configuration = told.get_document("config").expect("a configuration").clone();
        let version = configuration.get_i32("version").expect("a version");
        configuration.insert("version", version + 1);
        let members = configuration.get_array_mut("members").expect("members");
        for member in members {
            if let Bson::Document(member) = member
                && member.get_str("host").is_ok_and(|host| host == other)
            {
                member.insert("votes", 0);
                member.insert("priority", 0);
            }
        }
        let changed = admin.run_command(doc! { "replSetReconfig": configuration }).await;
        changed.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let findings = found(&store, "topology", Verdict::Warning).await;
    let topology = warned(&findings, "topology");
    assert!(
        topology.detail.contains("2 members with data") && topology.detail.contains("without a vote"),
        "{topology:?}"
    );
}

/// Its members hear each other, so the primary stays one, and confirms nothing.
#[tokio::test]
async fn a_set_whose_majority_does_not_follow_is_told_by_connecting_and_by_the_examination() {
    let set = ReplicaSet::with_fail_points(Size::Three).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    found(&store, "durability", Verdict::Good).await;
    let primary = set.primary().await.expect("a primary");
    for node in (0..set.size()).filter(|node| *node != primary) {
        let member = Client::with_uri_str(set.direct_uri(node))
            .await
            .expect("a client");
        let stop = doc! { "configureFailPoint": "stopReplProducer", "mode": "alwaysOn" };
        member.database("admin").run_command(stop).await.expect("told");
    }
    // Confirmed by the primary alone: from here on the majority is behind.
    let alone = WriteConcern::builder().w(Acknowledgment::Nodes(1)).build();
    let written = scratch.client().await.database(&scratch.database);
    let written = written.collection::<Document>("others");
    for _ in 0..3 {
        let write = written.insert_one(doc! {}).write_concern(alone.clone());
        write.await.expect("written");
    }
    let findings = found(&store, "durability", Verdict::Bad).await;
    let [durability] = of(&findings, "durability")[..] else {
        panic!("{findings:#?}");
    };
    let refused = MongoStore::connect(&scratch.url("")).await;
    let error = refused.expect_err("nothing is confirmed");
    for told in [&durability.detail, &error.message] {
        assert!(told.contains("not confirmed by a majority"), "{told}");
        assert!(!told.contains("no MongoDB primary answered"), "{told}");
    }
    assert_eq!(error.certainty, Certainty::NotApplied, "{error}");
}

/// With another one down nobody is elected any more.
#[tokio::test]
async fn member_that_is_down_is_named() {
    let mut set = ReplicaSet::start(Size::Three).await.expect("a set");
    set.become_patient().await.expect("a patient set");
    let store = Scratch::new(set.uri()).store().await;
    not_found(&store, "members").await;
    let primary = set.primary().await.expect("a primary");
    let down = (primary + 1) % set.size();
    set.kill(down);
    let findings = found(&store, "members", Verdict::Warning).await;
    let members = warned(&findings, "members");
    assert!(members.detail.contains(&set.address(down)), "{members:?}");
    assert!(!members.detail.contains(&set.address(primary)), "{members:?}");
}
