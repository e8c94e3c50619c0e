//! Waits that nobody goes on with: their futures are there, and are polled no more.
use crate::harness::counting::Counting;
use crate::harness::{Site, long_lock_timing, soon};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant};
use tenure::core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, Incarnation, Lease, Listed, Note, Occupancy, Page,
};
use tenure::{Fairness, LeaseName, LockManager, LockTimingOptions, SharedStore, Ttl};
use tenure_testkit::eventually_async;

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_waiter_that_is_not_polled_any_more_holds_no_queue_up_for_ever() {
    let site = Site::new();
    let fair = |id| site.manager_builder(id).fairness(Fairness::Fair).build().unwrap();
    let (holder, ours, theirs) = (fair("holder"), fair("ours"), fair("theirs"));
    // Else its turn would come while it is polled.
    let turn = soon("the turn", holder.turn("a")).await.unwrap();
    let mut waiting = pin!(ours.lock("a"));
    poll_once(waiting.as_mut()).await;
    let page = Page {
        prefix: "a/".to_owned(),
        after: None,
        limit: 2,
    };
    let store = site.store();
    let are_in_the_queue = || async { store.list(&page).await.unwrap().leases.len() == 2 };
    eventually_async(Duration::from_secs(20), "it has its place", are_in_the_queue).await;
    drop(turn);
    soon("who came later", theirs.lock("a")).await.unwrap();
}

/// After which nobody goes on with it.
async fn poll_once(mut waiting: Pin<&mut impl Future>) {
    let is_pending = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending()));
    assert!(is_pending.await, "it is held");
}

/// Who waits looks again when the time is over that the place before it has left, as the store says: by the waiter's own clock,
/// which stands still here until it is told to go on by just that time. Nothing else wakes it.
#[tokio::test(start_paused = true)]
async fn a_dead_waiters_place_holds_the_queue_up_for_what_the_store_says_is_left_of_it() {
    // While such a task runs, the clock does not go on by itself.
    let (over, until_over) = mpsc::channel::<()>();
    let standing_still = tokio::task::spawn_blocking(move || until_over.recv());
    let site = Site::new();
    let ttl = Ttl::from_secs(4).unwrap();
    leave_place(&site.store(), "dead", ttl).await;
    let store = Arc::new(Counting::new(site.store()));
    let manager = LockManager::builder(store.clone())
        .candidate("alive")
        .fairness(Fairness::Fair)
        .timing(long_lock_timing())
        .build()
        .unwrap();
    let waiting = tokio::spawn(async move { (manager.lock("a").await, manager) });
    let sees_both = async || store.listed().filter(|page| page.leases.len() == 2);
    eventually_async(PATIENCE, "a look at both", sees_both).await;
    let ended = async || {
        site.record("a/candidates/1/dead")
            .await
            .unwrap()
            .remaining
            .is_zero()
    };
    eventually_async(PATIENCE, "the end of a place", ended).await;
    let left = left_of("dead", &store.listed().unwrap());
    assert!(left <= ttl.duration(), "{left:?}");
    // Timers fire at whole milliseconds.
    let left = Duration::from_millis(u64::try_from(left.as_millis()).unwrap() + 1);
    tokio::time::advance(left).await;
    let over_by = Instant::now() + PATIENCE;
    while !waiting.is_finished() {
        assert!(Instant::now() < over_by, "it does not look again");
        tokio::task::yield_now().await;
    }
    let (lock, manager) = waiting.await.unwrap();
    drop(lock.unwrap());
    manager.close().await;
    over.send(()).unwrap();
    standing_still.await.unwrap().unwrap();
}

/// What a process that died has left of its wait for "a".
async fn leave_place(store: &SharedStore, candidate: &str, ttl: Ttl) {
    let place = Acquire {
        name: LeaseName::new(format!("a/candidates/1/{candidate}")).unwrap(),
        candidate: Candidate {
            id: CandidateId::new(candidate).unwrap(),
            incarnation: Incarnation::from_bits(1),
        },
        attempt: Attempt::FIRST,
        ttl,
        note: Note::default(),
    };
    let taken = store.acquire(&place).await.unwrap();
    assert!(matches!(taken, Acquired::Granted(_)), "{taken:?}");
}

/// What the page says is left of a place.
fn left_of(candidate: &str, page: &tenure::core::LeasePage) -> Duration {
    let leases = page.leases.iter().filter_map(|listed| match listed {
        Listed::Lease(lease) => Some(lease),
        Listed::Unreadable { .. } => None,
    });
    let mut of_candidate = leases.filter(|lease: &&Lease| lease.holder.id.as_str() == candidate);
    of_candidate.next().expect("it is listed").remaining
}

/// By the store's clock: nobody has extended the place after one ttl without a poll, so that it is over after two.
#[tokio::test]
async fn the_place_of_a_waiter_that_is_not_polled_is_extended_for_one_ttl_at_most() {
    let site = Site::new();
    // No beat falls on the end of the ttl: one that is a little late is not one too many.
    let timing = LockTimingOptions {
        beat_every: Some(Duration::from_millis(2_200)),
        ..LockTimingOptions::new(Duration::from_secs(8))
    };
    let timing = timing.check().unwrap();
    let ttl = timing.lease().ttl().duration();
    let fair = |id| {
        let builder = site.manager_builder(id).fairness(Fairness::Fair).timing(timing);
        builder.build().unwrap()
    };
    let (holder, ours, theirs) = (fair("holder"), fair("ours"), fair("theirs"));
    // Else its turn would come while it is polled.
    let turn = soon("the turn", holder.turn("a")).await.unwrap();
    let mut waiting = pin!(ours.lock("a"));
    poll_once(waiting.as_mut()).await;
    let place = async || site.record("a/candidates/1/ours").await;
    eventually_async(PATIENCE, "its place", place).await;
    drop(turn);
    soon("who came later", theirs.lock("a")).await.unwrap();
    let place = place().await.unwrap();
    assert_eq!(
        (place.terms, place.occupancy()),
        (1, Occupancy::Expired),
        "{place:?}"
    );
    let extended_for = place.held_for - place.renewed_ago;
    assert!(!extended_for.is_zero() && extended_for <= ttl, "{place:?}");
    assert_eq!(place.ttl.duration(), ttl);
}
