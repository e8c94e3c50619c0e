//! Waits that nobody goes on with: their futures are there, and are polled no more.
use crate::harness::counting::Counting;
use crate::harness::{PATIENCE, Site, enduring_lock_timing, enduring_timing, long_lock_timing, soon};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant};
use tenure::contract::{
    Acquire, Acquired, Attempt, Authority, Candidate, CandidateId, Cause, Event, Incarnation, Lease, Listed,
    Note, Occupancy, Page,
};
use tenure::{Fairness, LeaseName, LockManager, LockManagerBuilder, LockTimingOptions, SharedStore, Ttl};
use tenure_testkit::eventually_async;

/// Whose waits are over when nobody has polled them for a ttl, and whose leases outlast a stall.
fn enduring(site: &Site, candidate: &str) -> LockManagerBuilder {
    site.manager_builder(candidate).timing(enduring_lock_timing())
}

#[tokio::test]
async fn a_waiter_that_is_not_polled_any_more_holds_no_queue_up_for_ever() {
    let site = Site::new();
    let fair = |id| enduring(&site, id).fairness(Fairness::Fair).build().unwrap();
    let (holder, ours, theirs) = (fair("holder"), fair("ours"), fair("theirs"));
    // Else its turn would come while it is polled.
    let turn = soon("the turn", holder.turn("a")).await.unwrap();
    let mut waiting = pin!(ours.lock("a"));
    poll_once(waiting.as_mut()).await;
    let page = Page::first("a/", 2);
    let store = site.store();
    let are_in_the_queue = || async { store.list(&page).await.unwrap().leases.len() == 2 };
    eventually_async(Duration::from_secs(20), "it has its place", are_in_the_queue).await;
    drop(turn);
    drop(soon("who came later", theirs.lock("a")).await.unwrap());
}

/// In a loop of `select!`, say, one branch of which needs the lock that another has won.
#[tokio::test]
async fn a_lock_that_was_won_for_a_future_that_is_not_polled_goes_to_the_next() {
    let site = Site::new();
    let (ours, theirs) = (enduring(&site, "ours").build().unwrap(), site.manager("theirs"));
    let before = ours.lock("a").await.unwrap();
    let mut waiting = pin!(ours.lock("a"));
    poll_once(waiting.as_mut()).await;
    let second_here = ours.lock("a");
    drop(before);
    // First in line here, it wins, and nobody tells it.
    let is_won = async || site.record("a").await.is_some_and(|lease| lease.terms == 2);
    eventually_async(PATIENCE, "a second term", is_won).await;
    let won = site.record("a").await.unwrap().token;
    let theirs = soon("another process", theirs.lock("a")).await.unwrap();
    assert!(theirs.token() > won);
    let token = theirs.token();
    drop(theirs);
    let mut here = soon("another here", second_here).await.unwrap();
    assert!(here.token() > token);
    let token = here.token();
    here.release().await;
    // It waits anew, and has a lock that is held.
    let late = soon("who was first", waiting).await.unwrap();
    assert!(late.token() > token);
    assert_eq!(late.check(), Ok(late.token()));
}

/// It is the first in the queue and in the line of its process, waits for the lock itself, and is not polled
/// any more.
#[tokio::test]
async fn a_turn_of_a_future_that_is_not_polled_holds_up_nobody_for_long() {
    let site = Site::new();
    let fair = |id| enduring(&site, id).fairness(Fairness::Fair).build().unwrap();
    let (ours, theirs) = (fair("ours"), fair("theirs"));
    let holder = site.manager("holder");
    let before = holder.lock("a").await.unwrap();
    let mut events = ours.events();
    let mut waiting = Box::pin(ours.lock("a"));
    let waits_for_the_lock = async {
        let is_of_the_lock =
            |event: &Event| matches!(event, Event::Standby { lease, .. } if lease.name.as_str() == "a");
        while !is_of_the_lock(&events.recv().await.unwrap()) {}
    };
    tokio::select! {
        _ = &mut waiting => panic!("it is held"),
        () = soon("its turn", waits_for_the_lock) => {}
    }
    drop(before);
    drop(soon("another process", theirs.lock("a")).await.unwrap());
    let last = soon("another here", ours.lock("a")).await.unwrap();
    let token = last.token();
    drop(last);
    let late = soon("who was first", waiting).await.unwrap();
    assert!(late.token() > token);
    assert_eq!(late.check(), Ok(late.token()));
}

/// Whoever keeps a turn does not wait for anything here.
#[tokio::test]
async fn a_turn_that_somebody_keeps_is_extended_for_as_long_as_that() {
    let site = Site::new();
    let timing = enduring_lock_timing();
    let manager = site.manager_builder("ours").timing(timing).build().unwrap();
    let turn = manager.turn("a").await.unwrap();
    let mut events = manager.events();
    let lease = timing.lease();
    // For longer than a ttl, after which it would have been stuck.
    let mut left = 2 + lease.ttl().duration().as_millis() / lease.renew_every().as_millis();
    while left > 0 {
        match soon("an event", events.recv()).await.unwrap() {
            Event::Renewed { .. } => left -= 1,
            // The turn is answered before it is told of.
            Event::Acquired { .. } => {}
            event => panic!("{event:?}"),
        }
    }
    drop(turn);
}

/// After its last poll it has a ttl to be polled again: the store has extended the lease meanwhile.
#[tokio::test]
async fn a_term_that_nobody_takes_up_is_given_back_after_one_ttl() {
    let site = Site::new();
    let election = |id| Site::election_of(site.store(), id, enduring_timing());
    let (ours, theirs) = (election("ours"), election("theirs"));
    let leadership = theirs.campaign().await.unwrap();
    let mut waiting = pin!(ours.campaign());
    poll_once(waiting.as_mut()).await;
    drop(leadership);
    let is_given_back = async || matches!(site.record("job").await, Some(lease) if lease.terms == 2 && lease.occupancy() == Occupancy::Vacant);
    eventually_async(PATIENCE, "its end", is_given_back).await;
    let lease = site.record("job").await.unwrap();
    let ttl = enduring_timing().ttl().duration();
    // Released, and not expired: it was extended until then.
    assert!(lease.held_for >= ttl, "{lease:?}");
    let leadership = soon("a term", waiting).await.unwrap();
    assert!(leadership.token() > lease.token);
    assert!(matches!(leadership.authority(), Authority::Held { .. }));
}

/// The lock was held for as long as it may be, and its winner has not heard of it: what it is told then is of
/// another.
#[tokio::test]
async fn a_lock_that_was_over_before_anybody_took_it_up_is_taken_anew() {
    const MAX_HOLD: Duration = Duration::from_secs(4);
    let site = Site::new();
    let builder = site.manager_builder("ours").timing(long_lock_timing());
    let ours = builder.max_hold(MAX_HOLD).build().unwrap();
    let before = ours.lock("a").await.unwrap();
    let mut events = ours.events();
    let mut waiting = pin!(ours.lock("a"));
    poll_once(waiting.as_mut()).await;
    drop(before);
    let is_over = |event| {
        matches!(
            event,
            Event::Ended {
                cause: Cause::MaxHold(_),
                ..
            }
        )
    };
    while !is_over(soon("its end", events.recv()).await.unwrap()) {}
    let lock = soon("anew", waiting).await.unwrap();
    assert_eq!(lock.check(), Ok(lock.token()));
}

/// After which nobody goes on with it.
async fn poll_once(mut waiting: Pin<&mut impl Future>) {
    let is_pending = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending()));
    assert!(is_pending.await, "it is held");
}

/// Who waits looks again when the time is over that the place before it has left, as the store says: by the
/// waiter's own clock, which stands still here until it is told to go on by just that time. Nothing else
/// wakes it.
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
fn left_of(candidate: &str, page: &tenure::contract::LeasePage) -> Duration {
    let leases = page.leases.iter().filter_map(|listed| match listed {
        Listed::Lease(lease) => Some(lease),
        Listed::Unreadable { .. } => None,
    });
    let mut of_candidate = leases.filter(|lease: &&Lease| lease.holder.id.as_str() == candidate);
    of_candidate.next().expect("it is listed").remaining
}

/// By the store's clock: nobody has extended the place after one ttl without a poll, so that it is over after
/// two.
#[tokio::test]
async fn the_place_of_a_waiter_that_is_not_polled_is_extended_for_one_ttl_at_most() {
    let site = Site::new();
    // No beat falls on the end of the ttl: one that is a little late is not one too many.
    let timing = LockTimingOptions {
        renew_every: Some(Duration::from_millis(2_200)),
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
    // It takes its place up, or that would be given back as what nobody has.
    poll_once(waiting.as_mut()).await;
    // The ttl begins with this poll, and what the store tells with the place.
    let polled_after = place().await.unwrap().held_for;
    drop(turn);
    drop(soon("who came later", theirs.lock("a")).await.unwrap());
    let place = place().await.unwrap();
    assert_eq!(
        (place.terms, place.occupancy()),
        (1, Occupancy::Expired),
        "{place:?}"
    );
    let extended_for = place.held_for - place.renewed_ago;
    assert!(
        !extended_for.is_zero() && extended_for <= polled_after + ttl,
        "polled after {polled_after:?}: {place:?}"
    );
    assert_eq!(place.ttl.duration(), ttl);
}
