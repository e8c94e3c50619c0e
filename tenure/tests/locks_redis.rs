//! Locks in Redis: many, and contended.
use crate::harness::{PATIENCE, many, soon};
use std::sync::Arc;
use std::time::Duration;
use tenure::redis::RedisStore;
use tenure::tooling::Standby;
use tenure::{
    Event, Fairness, Fault, LeaseName, Lock, LockError, LockManager, LockManagerBuilder, LockTimingOptions,
    SharedStore,
};
use tenure_testkit::{RedisOptions, RedisServer, eventually_async};

async fn connect(url: &str) -> SharedStore {
    Arc::new(soon("connecting", RedisStore::connect(url)).await.unwrap())
}

#[tokio::test]
async fn a_beat_extends_all_locks_in_redis_and_one_that_is_lost_disturbs_none() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let tamper = || async {
        let tampered = server.ask(&format!("HINCRBY {{tenure}}:lease:{} generation 1", many::VICTIM));
        assert!(tampered.unwrap().starts_with(':'));
    };
    let ttl = Duration::from_secs(20);
    many::a_beat_extends_all_and_one_that_is_lost_disturbs_none(connect(&server.url()).await, ttl, tamper)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_lose_no_update_in_redis() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let url = server.url();
    let stores = [
        connect(&url).await,
        connect(&url).await,
        connect(&url).await,
        connect(&url).await,
    ];
    many::sixty_four_tasks_lose_no_update(stores).await;
}

/// Each request has 0.6 s.
async fn short(server: &RedisServer, candidate: &str) -> LockManagerBuilder {
    let timing = LockTimingOptions::new(Duration::from_secs(6)).check().unwrap();
    let builder = LockManager::builder(connect(&server.url()).await);
    builder.timing(timing).candidate(candidate)
}

/// Longer than what a lock in it has to meet, several request time-outs and a renewal, and than a machine
/// stands still before that.
const A_WHILE: Duration = Duration::from_secs(15);

fn of_the_store(outcome: Result<Lock, LockError>) {
    match outcome {
        // A dial that nobody answers, too.
        Err(LockError::Store(error)) => {
            assert!(
                matches!(error.fault, Fault::TimedOut | Fault::Unreachable),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_that_is_silent_is_told_from_a_lock_that_somebody_has() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let ours = short(&server, "ours").await.build().unwrap();
    let theirs = short(&server, "theirs").await.build().unwrap();
    let held = soon("their lock", theirs.lock("held")).await.unwrap();
    for patience in [Duration::ZERO, A_WHILE] {
        match soon("what they have", ours.try_lock_for("held", patience)).await {
            Err(LockError::TimedOut {
                waited,
                held_by: Some(lease),
                ..
            }) => {
                assert_eq!((lease.holder.id.as_str(), lease.token), ("theirs", held.token()));
                assert!(waited > patience, "{waited:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    server.freeze();
    for patience in [Duration::ZERO, Duration::from_millis(300), A_WHILE] {
        of_the_store(soon("a free one", ours.try_lock_for("free", patience)).await);
    }
    server.thaw();
}

#[tokio::test]
async fn whoever_stands_in_the_queue_of_a_silent_store_is_told_that_it_is_silent() {
    let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
    let fair = async |candidate| {
        let builder = short(&server, candidate).await.fairness(Fairness::Fair);
        builder.build().unwrap()
    };
    let (first, second, third) = (fair("first").await, fair("second").await, fair("third").await);
    let (store, name) = (connect(&server.url()).await, LeaseName::new("a").unwrap());
    let stand = async |number: usize| {
        let is_there = || async { Standby::list(&store, &name).await.unwrap().len() == number };
        eventually_async(PATIENCE, "a place in the queue", is_there).await;
    };
    let _held = soon("the lock", first.lock("a")).await.unwrap();
    let (mut waits, mut behind) = (
        Box::pin(second.lock("a")),
        Box::pin(third.try_lock_for("a", A_WHILE)),
    );
    tokio::select! {
        _ = &mut waits => panic!("it is held"),
        () = stand(1) => {}
    }
    tokio::select! {
        _ = &mut waits => panic!("it is held"),
        _ = &mut behind => panic!("it is held"),
        () = stand(2) => {}
    }
    server.freeze();
    of_the_store(soon("behind another", behind).await);
    of_the_store(soon("without a place", third.try_lock_for("b", A_WHILE)).await);
    server.thaw();
}

/// Whoever waits for a holder asks the store nothing until that one's ttl is over: what it has met is from
/// before the store fell silent.
#[tokio::test]
async fn a_store_that_falls_silent_while_somebody_waits_is_told_from_a_lock_that_others_have() {
    for fairness in [Fairness::Barging, Fairness::Fair] {
        let server = RedisServer::start(RedisOptions::durable()).await.unwrap();
        let timing = LockTimingOptions::new(Duration::from_secs(30)).check().unwrap();
        let manager = async |candidate| {
            let builder = short(&server, candidate).await.timing(timing);
            builder.fairness(fairness).build().unwrap()
        };
        let (ours, theirs) = (manager("ours").await, manager("theirs").await);
        let _held = soon("their lock", theirs.lock("a")).await.unwrap();
        let mut events = ours.events();
        let waiting = tokio::spawn(async move { ours.try_lock_for("a", Duration::from_secs(6)).await });
        let meets_it = async { while !matches!(events.recv().await, Ok(Event::Standby { .. })) {} };
        soon("it waits for the holder", meets_it).await;
        server.freeze();
        of_the_store(soon("the end of its patience", waiting).await.unwrap());
        server.thaw();
    }
}
