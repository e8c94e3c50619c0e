//! Watching by change streams, on a real replica set.

use crate::common::{Scratch, giving_back, granted, name, renewal, request, seconds, take};
use crate::faults::{proxied, proxied_with};
use mongodb::bson::{Bson, doc};
use std::time::Duration;
use tenure_core::{
    Ask, Asked, Change, Fault as StoreFault, FencingToken, Interest, LeaseStore, Released, Scope, Watch,
    WatchEvent, WatchSource,
};
use tenure_testkit::{Fault, Mongod, ReplicaSet, eventually_async};

/// Far beyond what a push takes, for a loaded machine.
const SOON: Duration = Duration::from_secs(30);

async fn scratch() -> Scratch {
    Scratch::new(ReplicaSet::shared().await.uri())
}

async fn next(watch: &mut Box<dyn Watch>) -> WatchEvent {
    let event = tokio::time::timeout(SOON, watch.next()).await;
    event.expect("an event in time").expect("the watch goes on")
}

fn changed(lease: &str, change: Change, token: FencingToken) -> WatchEvent {
    WatchEvent::Changed {
        name: name(lease),
        change,
        token: Some(token),
    }
}

/// One watch over everything that can happen, in its order, each with the token of its term; renewals, the
/// losers' requests and other leases are not told.
#[tokio::test]
async fn changes_are_told_in_order_with_their_tokens_and_renewals_are_not() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let mut watch = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .expect("a watch");
    let first = request("job", "first", seconds(60));
    let taken = take(&store, &first).await.token;
    take(&store, &request("job/other", "first", seconds(60))).await;
    let _held = store
        .acquire(&request("job", "loser", seconds(60)))
        .await
        .expect("answered");
    for _ in 0..3 {
        assert!(store.renew(&[renewal(&first, taken)]).await[0].is_ok());
        let _batch = store
            .renew(&[renewal(&first, taken), renewal(&first, taken)])
            .await;
    }
    take(&store, &first).await;
    let ask = Ask {
        name: name("job"),
        token: taken,
    };
    assert_eq!(store.ask(&ask).await, Ok(Asked::Noted));
    assert_eq!(store.ask(&ask).await, Ok(Asked::Noted));
    assert_eq!(
        store.release(&[giving_back(&first, taken)]).await[0],
        Ok(Released::Vacated)
    );
    assert_eq!(
        store.release(&[giving_back(&first, taken)]).await[0],
        Ok(Released::Vacated)
    );
    let second = take(&store, &request("job", "second", seconds(60))).await.token;
    scratch
        .leases()
        .await
        .delete_one(mongodb::bson::doc! { "_id": "job" })
        .await
        .expect("removed");

    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, taken));
    assert_eq!(next(&mut watch).await, changed("job", Change::Asked, taken));
    assert_eq!(next(&mut watch).await, changed("job", Change::Vacated, taken));
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, second));
    let removed = WatchEvent::Changed {
        name: name("job"),
        change: Change::Vacated,
        token: None,
    };
    assert_eq!(next(&mut watch).await, removed);
}

#[tokio::test]
async fn prefix_is_a_text_and_no_pattern() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let mut watch = store
        .watch(&Scope::Prefix("a.b".to_owned()), Interest::Everything)
        .await
        .expect("a watch");
    for lease in ["axb/1", "a", "a.c", "a.b/1"] {
        take(&store, &request(lease, "holder", seconds(60))).await;
    }
    let event = next(&mut watch).await;
    assert!(
        matches!(&event, WatchEvent::Changed { name, .. } if name.as_str() == "a.b/1"),
        "{event:?}"
    );
}

#[tokio::test]
async fn dropped_wait_loses_no_event() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    for number in 0..20 {
        let lease = format!("job/{number}");
        // Given up again and again, before and after the event is there.
        let _given_up = tokio::time::timeout(Duration::from_millis(1), watch.next())
            .await
            .is_ok_and(|event| {
                panic!("an event before the change: {event:?}");
            });
        let token = take(&store, &request(&lease, "holder", seconds(60))).await.token;
        assert_eq!(next(&mut watch).await, changed(&lease, Change::Taken, token));
    }
}

#[tokio::test]
async fn watch_ends_with_an_error_when_the_collection_is_dropped() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    take(&store, &request("job", "holder", seconds(60))).await;
    let mut watch = store
        .watch(&Scope::Name(name("job")), Interest::Everything)
        .await
        .expect("a watch");
    scratch.leases().await.drop().await.expect("dropped");
    let ended = tokio::time::timeout(SOON, async {
        loop {
            if let Err(error) = watch.next().await {
                break error;
            }
        }
    });
    let error = ended.await.expect("an end in time");
    assert_eq!(error.fault, StoreFault::AnotherStore, "{error}");
    let again = watch.next().await;
    assert!(again.is_err(), "an ended watch went on: {again:?}");
}

#[tokio::test]
async fn standalone_server_says_that_it_cannot_be_watched_and_works_without() {
    let server = Mongod::start().await.expect("a server");
    let scratch = Scratch::new(server.uri());
    let store = scratch.store().await;
    assert_eq!(store.traits().watch, WatchSource::Absent);
    let Err(error) = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
    else {
        panic!("a standalone server was watched");
    };
    assert_eq!(error.fault, StoreFault::Unsupported);
    assert!(error.message.contains("replica set"), "{error}");
    take(&store, &request("job", "holder", seconds(60))).await;
}

#[tokio::test]
async fn watch_survives_an_election_or_says_that_it_is_over() {
    let mut set = ReplicaSet::start(tenure_testkit::Size::Three)
        .await
        .expect("a set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    set.step_down().await.expect("stepped down");
    set.wait_until_writable().await.expect("a new primary");
    let asked = request("job", "holder", seconds(60));
    let token = tenure_testkit::eventually_async(Duration::from_secs(60), "an acquisition", || async {
        match store.acquire(&asked).await {
            Ok(tenure_core::Acquired::Granted(grant)) => Ok(grant.token),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    // Either is true to the contract: an event is told, or the reader is told to look for itself.
    match tokio::time::timeout(Duration::from_secs(60), watch.next())
        .await
        .expect("an answer in time")
    {
        Ok(WatchEvent::Changed { token: told, .. }) => assert_eq!(told, Some(token)),
        Ok(WatchEvent::Gap) | Err(_) => {}
    }
}

/// The driver opens the stream again where it was. Whatever becomes of that, nothing is passed over without a
/// word.
#[tokio::test]
async fn watch_that_was_cut_passes_over_nothing_without_a_word() {
    let (proxy, scratch, store) = proxied().await;
    let direct = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let mut watch = store
        .watch(&Scope::Name(asked.name.clone()), Interest::Everything)
        .await
        .expect("a watch");
    proxy.set(Fault::Refuse);
    proxy.cut_connections();
    let token = take(&direct, &asked).await.token;
    let released = direct.release(&[giving_back(&asked, token)]).await.remove(0);
    assert_eq!(released, Ok(Released::Vacated));
    proxy.heal();
    for change in [Change::Taken, Change::Vacated] {
        let event = tokio::time::timeout(SOON, watch.next()).await;
        match event.expect("an event in time") {
            Ok(told) => assert_eq!(told, changed("job", change, token)),
            Err(error) => {
                assert!(error.message.contains("watch"), "{error}");
                break;
            }
        }
    }
}

/// Whoever waits would wait on, though somebody else is told long before.
#[tokio::test]
async fn watch_whose_connection_falls_silent_is_over() {
    // With these, the driver alone notices nothing for ten minutes.
    let patient = "connectTimeoutMS=600000&heartbeatFrequencyMS=600000";
    let (proxy, _scratch, store) = proxied_with(patient).await;
    let scope = Scope::Prefix(String::new());
    let mut watch = store.watch(&scope, Interest::Everything).await.expect("a watch");
    proxy.set(Fault::BlackHole);
    let ended = tokio::time::timeout(SOON, watch.next()).await;
    let error = ended.expect("an end in time").expect_err("nobody can tell");
    assert!(
        [StoreFault::TimedOut, StoreFault::Unreachable].contains(&error.fault),
        "{error}"
    );
    proxy.heal();
    proxy.cut_connections();
    let mut watch = eventually_async(SOON, "another watch", || {
        store.watch(&scope, Interest::Everything)
    })
    .await;
    let asked = request("job", "holder", seconds(60));
    let token = eventually_async(SOON, "an acquisition", || async {
        store.acquire(&asked).await.map(granted)
    })
    .await
    .token;
    assert_eq!(next(&mut watch).await, changed("job", Change::Taken, token));
}

/// Each watch keeps a connection busy; the driver's own pool of ten would be used up by ten of them.
#[tokio::test]
async fn watches_are_bounded_and_keep_no_renewal_waiting() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(60));
    let token = take(&store, &asked).await.token;
    let mut watches = Vec::new();
    let refused = loop {
        match store
            .watch(&Scope::Name(name("other")), Interest::Everything)
            .await
        {
            Ok(watch) => watches.push(watch),
            Err(refused) => break refused,
        }
    };
    assert_eq!(
        (watches.len(), refused.fault),
        (64, StoreFault::Busy),
        "{refused}"
    );
    let renewed = store.renew(&[renewal(&asked, token)]).await.remove(0);
    assert!(renewed.is_ok(), "a renewal waited for a connection: {renewed:?}");
    watches.pop();
    store
        .watch(&Scope::Name(name("other")), Interest::Everything)
        .await
        .expect("room again");
}

/// As of another program that keeps its locks in the same collection, a thousand times a second: whoever
/// waits for a lease of ours would look each time.
#[tokio::test]
async fn records_of_another_program_wake_nobody() {
    let scratch = scratch().await;
    let store = scratch.store().await;
    let leases = scratch.leases().await;
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .expect("a watch");
    for key in [Bson::from("theirs"), Bson::from(" no name "), Bson::from(7)] {
        let theirs = doc! { "_id": &key, "lockedBy": "somebody" };
        leases.insert_one(theirs).await.expect("inserted");
        let theirs = doc! { "lockedBy": "somebody else" };
        leases
            .replace_one(doc! { "_id": &key }, theirs)
            .await
            .expect("replaced");
    }
    for key in [Bson::from(" no name "), Bson::from(7)] {
        leases.delete_one(doc! { "_id": key }).await.expect("deleted");
    }
    let token = take(&store, &request("ours", "holder", seconds(60))).await.token;
    assert_eq!(next(&mut watch).await, changed("ours", Change::Taken, token));
    // One in whose place a lease might stand.
    leases
        .delete_one(doc! { "_id": "theirs" })
        .await
        .expect("deleted");
    let vacated = WatchEvent::Changed {
        name: name("theirs"),
        change: Change::Vacated,
        token: None,
    };
    assert_eq!(next(&mut watch).await, vacated);
}
