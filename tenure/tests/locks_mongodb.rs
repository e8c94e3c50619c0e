//! Locks in MongoDB: many, contended, and through the faults of the network.
use crate::harness::{LONG_BEFORE, PATIENCE, long_lock_timing, many, soon};
use mongodb::bson::{Document, doc};
use std::sync::Arc;
use std::time::Duration;
use tenure::contract::Occupancy;
use tenure::mongodb::MongoStore;
use tenure::{LeaseName, LockError, LockManager, LockTimingOptions, ReleaseOutcome, SharedStore};
use tenure_testkit::{Fault, FaultProxy, ReplicaSet, RequestFault, Size, eventually_async};

async fn connect(uri: &str) -> SharedStore {
    Arc::new(soon("connecting", MongoStore::connect(uri)).await.unwrap())
}

fn manager(store: SharedStore) -> LockManager {
    let timing = LockTimingOptions::new(Duration::from_secs(12)).check().unwrap();
    LockManager::builder(store).timing(timing).build().unwrap()
}

fn long_manager(store: SharedStore) -> LockManager {
    let builder = LockManager::builder(store).timing(long_lock_timing());
    builder.build().unwrap()
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_mongodb_and_one_that_is_lost_disturbs_none() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let client = mongodb::Client::with_uri_str(set.uri()).await.unwrap();
    let tamper = || async move {
        let leases = client.database("tenure").collection::<Document>("job_leases");
        let outcome = leases
            .update_one(
                doc! { "_id": many::VICTIM },
                doc! { "$inc": { "generation": 1_i64 } },
            )
            .await
            .unwrap();
        assert_eq!(outcome.modified_count, 1);
    };
    let ttl = Duration::from_secs(20);
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(connect(&set.uri()).await, ttl, tamper).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_mongodb() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let uri = set.uri();
    let stores = [
        connect(&uri).await,
        connect(&uri).await,
        connect(&uri).await,
        connect(&uri).await,
    ];
    many::sixty_four_tasks_lose_no_update(stores).await;
}

#[tokio::test]
async fn a_timed_out_attempt_that_the_store_applied_is_found_and_released() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let direct = connect(&set.uri()).await;
    // The first lease of a store leaves its mark, and would wait for the answer to that.
    drop(
        soon("the first", long_manager(direct.clone()).lock("first"))
            .await
            .unwrap(),
    );
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let store = connect(&proxy.mongodb_uri()).await;
    let manager = long_manager(store.clone());
    let name = LeaseName::new("a").unwrap();
    // A connection for the request: opening one would need an answer, too.
    let (one, two) = tokio::join!(store.get(&name), store.get(&name));
    assert_eq!([one.unwrap(), two.unwrap()], [None, None]);
    // None of them is new any more.
    assert_eq!(store.get(&name).await.unwrap(), None);
    // The server applies the request and its answer never comes.
    proxy.set(Fault::HalfOpen);
    let outcome = soon("the attempt", manager.try_lock_for("a", LONG_BEFORE)).await;
    match outcome {
        Err(LockError::Store(error)) => {
            // Whichever comes last: its driver's word for silence, or our own.
            let silent = [tenure::Fault::Unreachable, tenure::Fault::TimedOut];
            assert!(silent.contains(&error.fault), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let held = direct.get(&name).await.unwrap().unwrap();
    assert_eq!(held.occupancy(), Occupancy::Held, "the request was applied");
    proxy.heal();
    let vacant = || async { direct.get(&name).await.unwrap().unwrap().occupancy() == Occupancy::Vacant };
    eventually_async(PATIENCE, "it is found and released", vacant).await;
    drop(soon("the next", manager.lock("a")).await.unwrap());
}

#[tokio::test]
async fn a_cut_reply_costs_no_second_term() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let manager = manager(connect(&proxy.mongodb_uri()).await);
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let lock = soon("the lock", manager.lock("a")).await.unwrap();
    assert_eq!(proxy.counts().cut_after, 1, "the reply was lost");
    let record = connect(&set.uri()).await.get(lock.name()).await.unwrap().unwrap();
    assert_eq!((record.terms, record.token), (1, lock.token()));
}

/// The store has released it, and whoever waited has it, when the release is asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_whose_answer_was_lost_is_not_told_as_a_loss() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let proxy = FaultProxy::mongodb(set.address(0)).unwrap();
    let holder = long_manager(connect(&proxy.mongodb_uri()).await);
    let waiter = long_manager(connect(&set.uri()).await);
    let mut lock = soon("the lock", holder.lock("a")).await.unwrap();
    let waiting = tokio::spawn(async move { (waiter.lock("a").await, waiter) });
    // Long enough for its first attempt: it is woken by the release.
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.next_commands(1, "findAndModify", RequestFault::CutAfter);
    let (outcome, next) = tokio::join!(
        soon("the release", lock.release()),
        soon("the hand-over", waiting)
    );
    assert_eq!(proxy.counts().cut_after, 1, "the answer was lost");
    drop(next.unwrap().0.unwrap());
    // On a machine that stood still the waiter comes only after the second release, which finds the first.
    let is_true = matches!(outcome, ReleaseOutcome::Unconfirmed(_) | ReleaseOutcome::Released);
    assert!(is_true, "{outcome:?}");
}

/// A hundred in one batch, and one of them locked by a transaction for longer than a ttl.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_kept_locked_costs_no_lock_but_its_own() {
    const LOCKS: usize = 100;
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let timing = LockTimingOptions::new(Duration::from_secs(30)).check().unwrap();
    let builder = LockManager::builder(connect(&set.uri()).await).timing(timing);
    let manager = builder.build().unwrap();
    let mut locks = Vec::new();
    for number in 0..LOCKS {
        let lock = manager.lock(format!("lock/{number:03}"));
        locks.push(soon("a lock", lock).await.unwrap());
    }
    let client = mongodb::Client::with_uri_str(set.uri()).await.unwrap();
    let leases = client.database("tenure").collection::<Document>("job_leases");
    let mut session = client.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    let victim = locks.remove(LOCKS / 2);
    let foreign = doc! { "$set": { "foreign": 1 } };
    let locked = leases.update_one(doc! { "_id": victim.name().as_str() }, foreign);
    locked.session(&mut session).await.unwrap();
    let lost = tokio::time::timeout(Duration::from_secs(45), victim.lost());
    lost.await.expect("the one is lost by the end of its ttl");
    // Whoever had waited with it would be lost with the next beat at the latest.
    tokio::time::sleep(manager.timing().lease().renew_every() * 2).await;
    for lock in &locks {
        assert!(lock.check().is_ok(), "{:?}", lock.check());
    }
    session.abort_transaction().await.unwrap();
}

#[tokio::test]
async fn the_preset_for_locks_has_its_own_place_unless_the_url_names_another() {
    let set = ReplicaSet::start(Size::One).await.unwrap();
    let preset = soon("connecting", MongoStore::for_locks().connect(&set.uri()))
        .await
        .unwrap();
    let manager = manager(Arc::new(preset));
    let lock = soon("the lock", manager.lock("a")).await.unwrap();
    let client = mongodb::Client::with_uri_str(set.uri()).await.unwrap();
    let records = client
        .database("MongoLocks")
        .collection::<Document>("pessimisticLocks");
    let record = records.find_one(doc! { "_id": "a" }).await.unwrap().unwrap();
    assert_eq!(
        record.get_i64("generation").unwrap().unsigned_abs(),
        lock.token().number()
    );
    let (address, options) = set
        .uri()
        .split_once("/?")
        .map_or((set.uri(), String::new()), |(address, options)| {
            (address.to_owned(), format!("&{options}"))
        });
    let address = address.trim_end_matches('/');
    // The same place without the preset, as the documentation names it.
    let place = format!("{address}/MongoLocks?collection=pessimisticLocks{options}");
    let store = soon("connecting", MongoStore::connect(&place)).await.unwrap();
    let lease = tenure::LeaseStore::get(&store, lock.name()).await.unwrap();
    assert_eq!(lease.map(|lease| lease.token), Some(lock.token()));
    let named = format!("{address}/shop?collection=locks{options}");
    let store = soon("connecting", MongoStore::for_locks().connect(&named))
        .await
        .unwrap();
    assert!(
        tenure::LeaseStore::traits(&store)
            .location
            .ends_with("/shop.locks")
    );
}

#[tokio::test]
async fn a_store_that_cannot_wake_is_looked_at() {
    let server = tenure_testkit::Mongod::start().await.unwrap();
    let (ours, theirs) = (
        long_manager(connect(&server.uri()).await),
        long_manager(connect(&server.uri()).await),
    );
    let lock = soon("their lock", theirs.lock("a")).await.unwrap();
    let waiting = tokio::spawn(async move { (ours.lock("a").await, ours) });
    tokio::time::sleep(Duration::from_millis(400)).await;
    drop(lock);
    let released_at = std::time::Instant::now();
    let (lock, _ours) = soon("the hand-over", waiting).await.unwrap();
    drop(lock.unwrap());
    // Without a watch, and long before the record would have ended.
    assert!(released_at.elapsed() < LONG_BEFORE, "{:?}", released_at.elapsed());
}
