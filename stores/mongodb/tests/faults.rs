//! Real faults: lost replies, silent and dead servers, elections. Errors come back bounded, tokens rise.

use crate::common::{Scratch, giving_back, name, persist, renewal, request, seconds, take, with_database};
use std::time::Duration;
use tenure_conformance::wire::{Wire, bounded};
use tenure_core::{Certainty, Fault as StoreFault, LeaseStore, Released, Renew, Renewed};
use tenure_mongodb::MongoStore;
use tenure_testkit::{Fault, FaultProxy, ReplicaSet, RequestFault, Size};

/// A proxy in front of the primary of the shared set.
pub(crate) async fn proxied() -> (FaultProxy, Scratch, MongoStore) {
    proxied_with("").await
}

pub(crate) async fn proxied_with(options: &str) -> (FaultProxy, Scratch, MongoStore) {
    let set = ReplicaSet::shared().await;
    let primary = set.primary().await.expect("a primary");
    let proxy = FaultProxy::mongodb(set.address(primary)).expect("a proxy");
    let scratch = Scratch::new(set.uri());
    let url = with_database(&proxy.mongodb_uri(), &scratch.database, options);
    let store = MongoStore::connect(&url)
        .await
        .expect("connects through the proxy");
    (proxy, scratch, store)
}

async fn wire() -> Wire {
    let (proxy, scratch, store) = proxied().await;
    Wire {
        store: Box::new(store),
        proxy,
        acquire: "findAndModify",
        renew: &[(1, "findAndModify"), (2, "update"), (2, "find")],
        release: "findAndModify",
        keep: Box::new(scratch),
    }
}

tenure_conformance::wire_suite!(wire);

#[tokio::test]
async fn silent_network_is_given_up_and_works_again_at_once() {
    // With these, the driver alone notices nothing for ten minutes: the bound is the store's own.
    let patient = "connectTimeoutMS=600000&heartbeatFrequencyMS=600000";
    for fault in [Fault::BlackHole, Fault::HalfOpen] {
        let (proxy, _scratch, store) = proxied_with(patient).await;
        let asked = request("job", "holder", seconds(60));
        let grant = take(&store, &asked).await;
        proxy.set(fault);
        let silent = bounded("a silent renewal", store.renew(&[renewal(&asked, grant.token)]))
            .await
            .remove(0);
        let error = silent.expect_err("nothing answered");
        assert!(
            matches!(error.fault, StoreFault::TimedOut | StoreFault::Unreachable),
            "{error}"
        );
        let read = bounded("a silent read", store.get(&asked.name))
            .await
            .expect_err("nothing answered");
        assert_eq!(read.certainty, Certainty::NotApplied, "a read changes nothing");
        // The old connections stay silent for good: only new ones help.
        proxy.heal();
        let renewed = store.renew(&[renewal(&asked, grant.token)]).await.remove(0);
        assert!(
            matches!(renewed, Ok(Renewed::Extended { .. })),
            "{fault:?}: {renewed:?}"
        );
        assert!(store.get(&asked.name).await.expect("a read").is_some());
    }
}

/// A client of the user's with the driver's own retries: the replayed answer lacks the server's clock, and
/// must not pass for a grant.
#[tokio::test]
async fn replayed_answer_of_a_driver_that_retries_is_unknown_and_resolved() {
    let set = ReplicaSet::shared().await;
    let primary = set.primary().await.expect("a primary");
    let proxy = FaultProxy::mongodb(set.address(primary)).expect("a proxy");
    let scratch = Scratch::new(set.uri());
    let uri = format!("{}&retryWrites=true", proxy.mongodb_uri());
    let client = mongodb::Client::with_uri_str(uri).await.expect("a client");
    let store = MongoStore::with_client(client, &scratch.database, "job_leases")
        .await
        .expect("attaches");
    let asked = request("job", "holder", seconds(60));
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let first = bounded("the replayed answer", store.acquire(&asked)).await;
    assert_eq!(proxy.counts().cut_after, 1, "the fault happened");
    let error = first.expect_err("an answer without the server's clock passed for a grant");
    assert_eq!(error.certainty, Certainty::Unknown, "{error}");
    assert!(error.message.contains("replayed"), "{error}");
    let grant = take(&store, &asked).await;
    assert_eq!((grant.terms, grant.again), (1, true));
}

#[tokio::test]
async fn elections_cost_no_leadership_and_tokens_rise_through_them() {
    let mut set = ReplicaSet::start(Size::Three).await.expect("a set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    let held = request("held", "holder", seconds(300));
    let term = persist(&store, &held).await;
    let mut last = None;
    for how in ["step down", "kill", "freeze"] {
        let asked = request("job", how, seconds(300));
        let node = match how {
            "step down" => set.step_down().await.expect("stepped down"),
            "kill" => {
                let primary = set.primary().await.expect("a primary");
                set.kill(primary);
                primary
            }
            _ => set.freeze_primary().await.expect("frozen"),
        };
        let grant = persist(&store, &asked).await;
        assert!(
            last.is_none_or(|last| grant.token > last),
            "{how}: the token fell"
        );
        last = Some(grant.token);
        // The same attempt has the same token, whatever was lost on the way.
        let again = persist(&store, &asked).await;
        assert_eq!(again.token, grant.token, "{how}");
        let renewed = tenure_testkit::eventually_async(Duration::from_secs(60), "a renewal", || async {
            bounded("a renewal", store.renew(&[renewal(&held, term.token)]))
                .await
                .remove(0)
        })
        .await;
        assert!(
            matches!(renewed, Renewed::Extended { .. }),
            "{how}: the lease was lost: {renewed:?}"
        );
        let back = [giving_back(&asked, grant.token)];
        let released = tenure_testkit::eventually_async(Duration::from_secs(60), "a release", || async {
            store.release(&back).await.remove(0)
        })
        .await;
        assert_eq!(released, Released::Vacated, "{how}");
        match how {
            "step down" => {}
            "kill" => set.restart(node).await.expect("restarted"),
            _ => set.thaw(node),
        }
        set.wait_until_complete().await.expect("a whole set");
    }
}

#[tokio::test]
async fn set_without_a_majority_confirms_nothing_and_says_so_in_time() {
    let mut set = ReplicaSet::start(Size::Three).await.expect("a set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    let asked = request("job", "holder", seconds(300));
    persist(&store, &asked).await;
    let primary = set.primary().await.expect("a primary");
    for node in 0..set.size() {
        if node != primary {
            set.kill(node);
        }
    }
    // For a moment the primary still takes itself for one, but has no majority. Nobody may be told an old
    // record, or a token.
    let read = bounded("a read", store.get(&name("job"))).await;
    assert!(read.is_err(), "an unconfirmed read was answered: {read:?}");
    let other = request("other", "holder", seconds(300));
    let acquired = bounded("an acquisition", store.acquire(&other)).await;
    let error = acquired.expect_err("nothing can be confirmed");
    assert!(
        matches!(
            error.fault,
            StoreFault::TimedOut | StoreFault::Unreachable | StoreFault::Internal
        ),
        "{error}"
    );
}

/// Sets a primary alone that has not noticed it, with a lease that is held; answers with the renewal by
/// another.
async fn lonely_primary() -> (ReplicaSet, Scratch, MongoStore, Renew) {
    let mut set = ReplicaSet::start(Size::Three).await.expect("a set");
    let scratch = Scratch::new(set.uri());
    let store = scratch.store().await;
    let grant = persist(&store, &request("job", "holder", seconds(300))).await;
    let primary = set.primary().await.expect("a primary");
    for node in (0..set.size()).filter(|node| *node != primary) {
        set.freeze(node);
    }
    let wrong = renewal(&request("job", "other", seconds(300)), grant.token);
    (set, scratch, store, wrong)
}

/// A refusal writes nothing, so the majority does not confirm it: such a primary does not know whether it is
/// so.
#[tokio::test]
async fn primary_without_a_majority_ends_no_term() {
    let (_set, _scratch, store, wrong) = lonely_primary().await;
    let wrong_one = giving_back(&request("job", "other", seconds(300)), wrong.token);
    let (renewed, released) = tokio::join!(
        store.renew(std::slice::from_ref(&wrong)),
        store.release(std::slice::from_ref(&wrong_one)),
    );
    assert!(renewed[0].is_err(), "nobody could confirm it: {renewed:?}");
    assert!(released[0].is_err(), "nobody could confirm it: {released:?}");
}

#[tokio::test]
async fn primary_without_a_majority_ends_no_term_of_a_batch() {
    let (_set, _scratch, store, wrong) = lonely_primary().await;
    let gone = renewal(&request("none", "other", seconds(300)), wrong.token);
    let verdicts = store.renew(&[wrong, gone]).await;
    for verdict in verdicts {
        assert!(verdict.is_err(), "nobody could confirm it: {verdict:?}");
    }
}

/// Between a batch's update and its read, somebody else extends the same term: whether this batch did is not
/// known, and must not be claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_that_was_overtaken_claims_no_extension() {
    let (proxy, scratch, store) = proxied().await;
    let asked = request("job", "holder", seconds(60));
    let grant = take(&store, &asked).await;
    let leases = scratch.leases().await;
    let overtaking = tokio::spawn(async move {
        loop {
            let stamp = mongodb::bson::doc! { "$set": { "renewal": mongodb::bson::oid::ObjectId::new() } };
            let _failed = leases
                .update_one(mongodb::bson::doc! { "_id": "job" }, stamp)
                .await;
        }
    });
    let pause = Duration::from_millis(400);
    proxy.set(Fault::Delay {
        to_server: pause,
        to_client: Duration::ZERO,
    });
    let batch = [
        renewal(&asked, grant.token),
        renewal(&request("none", "holder", seconds(60)), grant.token),
    ];
    let verdicts = store.renew(&batch).await;
    overtaking.abort();
    let error = verdicts[0]
        .as_ref()
        .expect_err("an overtaken batch claimed an extension");
    assert_eq!(
        (error.fault, error.certainty),
        (StoreFault::Busy, Certainty::Unknown),
        "{error}"
    );
    assert_eq!(verdicts[1], Ok(Renewed::Lost(None)));
}

/// As the engine asks: it gives a batch up after a tenth of the ttl, and asks for all of it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_releases_that_are_given_up_go_on_where_they_were() {
    const LEASES: usize = 400;
    let (proxy, scratch, store) = proxied().await;
    let direct = scratch.store().await;
    let mut releases = Vec::new();
    for number in 0..LEASES {
        let asked = request(&format!("job/{number:03}"), "holder", seconds(300));
        let grant = take(&direct, &asked).await;
        releases.push(giving_back(&asked, grant.token));
    }
    proxy.set(Fault::Delay {
        to_server: Duration::from_millis(50),
        to_client: Duration::ZERO,
    });
    // Each call has time for a part of them, and the last of the calls for what is left.
    let mut calls = 0;
    loop {
        calls += 1;
        assert!(calls <= 40, "no call comes further than the one before");
        let released = tokio::time::timeout(Duration::from_millis(1_000), store.release(&releases)).await;
        if released.is_ok_and(|answers| answers.iter().all(|answer| *answer == Ok(Released::Vacated))) {
            break;
        }
    }
    assert!(calls > 1, "one call had time for all of them: nothing was shown");
}
