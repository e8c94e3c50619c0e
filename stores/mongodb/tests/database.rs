//! Which database: those of the server's own are not as others.

use crate::common::{Scratch, random_bits, request, seconds, take, with_database};
use mongodb::bson::{Document, doc};
use tenure_core::{
    Bump, Certainty, Fault, Fence, FenceError, FencingToken, Interest, LeaseName, LeaseStore, Leases,
    ResourceName, Scope, StoreError, Term, Verdict, WatchSource,
};
use tenure_mongodb::{MongoFence, MongoStore};
use tenure_testkit::ReplicaSet;

fn of_the_store<T: std::fmt::Debug>(refused: Result<T, FenceError>) -> StoreError {
    match refused {
        Err(FenceError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// `mongodb://db1,db2,db3/local` is soon written, and its writes are confirmed at once: after an election the
/// next primary would grant what is held, and admit any term.
#[tokio::test]
async fn the_database_that_a_fail_over_forgets_is_refused_for_leases_and_marks() {
    let uri = ReplicaSet::shared().await.uri();
    let scratch = Scratch::new(uri.clone());
    let (local, client) = (with_database(&uri, "local", ""), scratch.client().await);
    let collection = format!("leases-{:016x}", random_bits());
    let mut refused = vec![
        MongoStore::connect(&local).await.expect_err("by a URL"),
        MongoStore::with_client(client.clone(), "local", &collection)
            .await
            .expect_err("by a client"),
        MongoFence::connect(&local, Leases::Here)
            .await
            .expect_err("a fence"),
    ];
    let fence = MongoFence::in_collection(&client.database("local"), &collection, Leases::Elsewhere);
    let resource = ResourceName::new("ledger").expect("a name");
    let token = FencingToken::new(5).expect("a token");
    let term = Term::new(LeaseName::new("nightly").expect("a name"), token);
    let bump = Bump {
        resource: resource.clone(),
        above: None,
        lease: None,
    };
    refused.extend([
        of_the_store(fence.claim(&resource, &term).await),
        of_the_store(fence.check(&resource, &term).await),
        of_the_store(fence.bump(&bump).await),
        of_the_store(fence.mark(&resource).await),
    ]);
    let documents = client
        .database(&scratch.database)
        .collection::<Document>("accounts");
    match fence.documents(&resource, &term, &documents).await {
        Err(FenceError::Store(error)) => refused.push(error),
        other => panic!("{other:?}"),
    }
    for error in refused {
        assert_eq!(
            (error.fault, error.certainty),
            (Fault::Invalid, Certainty::NotApplied),
            "{error}"
        );
        assert!(error.message.contains("\"local\""), "{error}");
    }
    let names = client
        .database("local")
        .list_collection_names()
        .await
        .expect("a list");
    assert!(!names.contains(&collection), "{names:?}");
}

/// `/admin` is often written for the users' sake. It is replicated, so that leases are safe there.
#[tokio::test]
async fn a_database_of_the_server_s_own_holds_leases_that_cannot_be_watched_and_says_so() {
    let uri = ReplicaSet::shared().await.uri();
    let scratch = Scratch::new(uri.clone());
    let collection = format!("leases-{:016x}", random_bits());
    let url = with_database(&uri, "admin", &format!("collection={collection}"));
    let store = MongoStore::connect(&url).await.expect("a store");
    assert_eq!(store.traits().watch, WatchSource::Absent);
    take(&store, &request("job", "holder", seconds(60))).await;
    let Err(error) = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
    else {
        panic!("it was watched");
    };
    assert_eq!(error.fault, Fault::Unsupported, "{error}");
    assert!(error.message.contains("name another database"), "{error}");
    let findings = store.examine().await.expect("an examination");
    let watch = findings.iter().find(|finding| finding.subject == "watch");
    let watch = watch.expect("it is examined");
    assert_eq!(watch.verdict, Verdict::Warning, "{watch:?}");
    let repair = watch.repair.as_deref().unwrap_or_default();
    assert!(repair.contains("another database"), "{watch:?}");
    let leases = scratch
        .client()
        .await
        .database("admin")
        .collection::<Document>(&collection);
    leases.drop().await.expect("removed");
}

/// As that of the preset for locks beside one in small letters. To try on for ever would hide it.
#[tokio::test]
async fn a_database_whose_name_differs_in_case_alone_is_refused_with_the_way_out() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    take(&scratch.store().await, &request("job", "holder", seconds(60))).await;
    let other = scratch.database.replace("tenure", "Tenure");
    let url = with_database(&scratch.uri, &other, "");
    let refused = match MongoStore::connect(&url).await {
        Ok(store) => store
            .acquire(&request("job", "holder", seconds(60)))
            .await
            .map(drop)
            .expect_err("there is one already"),
        Err(error) => error,
    };
    assert_eq!(
        (refused.fault, refused.certainty),
        (Fault::Invalid, Certainty::NotApplied),
        "{refused}"
    );
    assert!(refused.message.contains("name another database"), "{refused}");
}
