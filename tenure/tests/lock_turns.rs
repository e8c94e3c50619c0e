//! Those of one process who wait in its turn: when they leave it, and that they keep it for as long as they
//! wait.
use crate::harness::counting::Counting;
use crate::harness::{Site, long_lock_timing, soon};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tenure::contract::{Event, NameFault, Occupancy};
use tenure::{BuildError, Fairness, FencingToken, LockError, LockManager, LockTiming, LockTimingOptions};
use tenure_testkit::eventually_async;
use tokio::task::JoinHandle;

fn fair(site: &Site, candidate: &str, timing: LockTiming) -> Arc<LockManager> {
    let builder = site.manager_builder(candidate).fairness(Fairness::Fair);
    Arc::new(builder.timing(timing).build().unwrap())
}

const TTL: Duration = Duration::from_secs(4);

/// So short that a test may wait for longer, and renewed so often that it outlasts a stall.
fn short() -> LockTiming {
    let options = LockTimingOptions {
        renew_every: Some(TTL / 8),
        ..LockTimingOptions::new(TTL)
    };
    options.check().unwrap()
}

/// Has the lock once, for so long, and tells its token.
fn waits(manager: &Arc<LockManager>, holds: Duration) -> JoinHandle<Result<FencingToken, LockError>> {
    let manager = manager.clone();
    tokio::spawn(async move {
        let lock = manager.lock("a").await?;
        tokio::time::sleep(holds).await;
        Ok(lock.token())
    })
}

/// How often a process has entered the queue, and whether it stands there.
async fn place_of(site: &Site, candidate: &str) -> Option<(u64, Occupancy)> {
    let place = site.record(&format!("a/candidates/1/{candidate}")).await?;
    Some((place.terms, place.occupancy()))
}

async fn until_queued(site: &Site, candidate: &str, times: u64) {
    let is_queued = || async { place_of(site, candidate).await == Some((times, Occupancy::Held)) };
    eventually_async(Duration::from_secs(20), "a place in the queue", is_queued).await;
}

/// Long enough for those who come, or who follow, to be behind the first.
async fn let_them_follow() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// They have followed it, and have no place of their own: whoever stands in the queue is before them.
#[tokio::test]
async fn those_who_followed_one_that_leaves_enter_the_queue_behind_all_others() {
    let site = Site::new();
    let [blocker, many, other] = ["blocker", "many", "other"].map(|id| fair(&site, id, long_lock_timing()));
    let held = soon("the blocker", blocker.lock("a")).await.unwrap();
    // Only who stands in line when the turn comes may follow.
    let turn = soon("the turn before", blocker.turn("a")).await.unwrap();
    let first = waits(&many, Duration::ZERO);
    until_queued(&site, "many", 1).await;
    let followers = [(); 2].map(|()| waits(&many, Duration::ZERO));
    let_them_follow().await;
    drop(turn);
    let_them_follow().await;
    let other = waits(&other, Duration::ZERO);
    until_queued(&site, "other", 1).await;
    first.abort();
    until_queued(&site, "many", 2).await;
    assert_eq!(many.locks(), 2, "each counts");
    drop(held);
    let other = soon("the other", other).await.unwrap().unwrap();
    for follower in followers {
        let token = soon("its turn", follower).await.unwrap().unwrap();
        assert!(token > other, "{token} before {other}");
    }
}

/// Both tell that they are polled. Else the place would be lost, or others of the process would enter the
/// queue meanwhile.
#[tokio::test]
async fn who_waits_for_a_lock_for_longer_than_a_ttl_keeps_the_turn_and_so_does_who_follows() {
    let site = Site::new();
    let blocker = site.manager("blocker");
    let many = fair(&site, "many", short());
    let held = soon("the blocker", blocker.lock("a")).await.unwrap();
    let turn = soon("the turn before", blocker.turn("a")).await.unwrap();
    let mut events = many.events();
    let longer = TTL * 3 / 2;
    let first = waits(&many, longer);
    until_queued(&site, "many", 1).await;
    // More than may follow.
    let others = [(); 10].map(|()| waits(&many, Duration::ZERO));
    let_them_follow().await;
    drop(turn);
    tokio::time::sleep(longer).await;
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, Event::Stuck { .. }), "{event:?}");
    }
    assert_eq!(place_of(&site, "many").await, Some((1, Occupancy::Held)));
    drop(held);
    // The first has it, and has left the queue.
    while !first.is_finished() {
        let (times, _) = place_of(&site, "many").await.unwrap();
        assert!(times == 1 || first.is_finished(), "another has entered the queue");
        tokio::time::sleep(TTL / 100).await;
    }
    first.await.unwrap().unwrap();
    for other in others {
        soon("its turn", other).await.unwrap().unwrap();
    }
}

/// It is gone when another of its process has the turn, and its own end is no news to those who stand behind
/// that one.
#[tokio::test]
async fn one_who_was_passed_over_and_leaves_does_not_end_the_turn_of_the_next() {
    let site = Site::new();
    let blocker = fair(&site, "blocker", long_lock_timing());
    let many = fair(&site, "many", short());
    let turn = soon("the turn before", blocker.turn("a")).await.unwrap();
    let mut first = Box::pin(many.lock("a"));
    // After which nobody goes on with it.
    let is_pending = poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending()));
    assert!(is_pending.await, "another has the turn");
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(waits(&many, Duration::from_millis(300)));
        tokio::task::yield_now().await;
    }
    until_queued(&site, "many", 2).await;
    drop(first);
    let_them_follow().await;
    drop(turn);
    let mut tokens = Vec::new();
    for other in others {
        tokens.push(soon("its turn", other).await.unwrap().unwrap());
    }
    assert!(tokens.is_sorted(), "in the order in which they came: {tokens:?}");
}

/// The place in the queue is a lease, too, whose name holds the lock's and the candidate's.
#[tokio::test]
async fn a_fair_lock_whose_place_would_have_too_long_a_name_is_refused_with_the_length_that_it_may_have() {
    let site = Site::new();
    let fair = |id: usize| {
        let builder = site.manager_builder(&"c".repeat(id));
        builder.fairness(Fairness::Fair).build()
    };
    let manager = fair(100).unwrap();
    let longest = 255 - "/candidates/1/".len() - 100;
    drop(
        soon("the longest", manager.lock("n".repeat(longest)))
            .await
            .unwrap(),
    );
    let longer = "n".repeat(longest + 1);
    for refused in [
        soon("a longer one", manager.lock(&longer)).await,
        soon("a look at it", manager.try_lock(&longer)).await,
    ] {
        let Err(LockError::Name(error)) = refused else {
            panic!("{refused:?}")
        };
        let (bytes, bytes_max) = (longest + 1, longest);
        assert_eq!(error.fault, NameFault::TooLong { bytes, bytes_max });
        let told = error.to_string();
        assert!(
            told.contains("candidate id") && told.contains("fair lock"),
            "{told}"
        );
        assert!(!told.contains("/candidates/"), "{told}");
    }
    // One for which no name at all is short enough is refused at once.
    let longest = 255 - "a/candidates/1/".len();
    assert!(fair(longest).is_ok());
    let Err(BuildError::Name(error)) = fair(longest + 1) else {
        panic!("no name has room beside this id")
    };
    let (bytes, bytes_max) = (longest + 1, longest);
    assert_eq!(error.fault, NameFault::TooLong { bytes, bytes_max });
}

#[tokio::test]
async fn a_look_by_a_manager_that_was_closed_asks_the_store_nothing() {
    let site = Site::new();
    let store = Arc::new(Counting::new(site.store()));
    let manager = LockManager::builder(store.clone()).fairness(Fairness::Fair);
    let manager = manager.timing(long_lock_timing()).build().unwrap();
    let owner = manager.owner();
    soon("closing", manager.close()).await;
    let looked = soon("a look", owner.try_lock("a")).await;
    assert!(matches!(looked, Err(LockError::Stopped(_))), "{looked:?}");
    assert_eq!(store.pages(), 0);
}
