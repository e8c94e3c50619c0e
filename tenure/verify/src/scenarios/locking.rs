//! Locks: waiters in line, handles of one owner, a manager that goes.

use crate::clock::{self, Pace};
use crate::lock::{Fairness, Lock, LockError, LockManager, LockTimingOptions, Reentrancy};
use crate::site::{Site, any_pace, any_weather, check_events, pause, some_time, timing};
use crate::store::Weather;
use crate::{Loss, ReleaseOutcome};
use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_core::{Authority, Cause};

fn manager(site: &Site, reentrancy: Reentrancy) -> Arc<LockManager> {
    let timing = LockTimingOptions::new(timing().ttl().duration());
    let timing = timing.check().expect("a sound timing");
    let builder = LockManager::builder(site.store.clone()).timing(timing);
    Arc::new(builder.reentrancy(reentrancy).build().expect("it fits the store"))
}

fn close(site: &Site, manager: Arc<LockManager>) {
    close_only(manager);
    site.wait_until_nothing_runs();
    site.check_nothing_is_renewed();
}

/// Waiters in one process, one of whom leaves about when it is its turn: each of the others gets it, alone.
pub(super) fn waiter_leaves_about_its_turn() {
    let site = Site::begin(any_pace(), any_weather());
    let manager = manager(&site, Reentrancy::Refused);
    let mut events = manager.events();
    let hasty = {
        let (site, manager) = (site.clone(), manager.clone());
        thread::spawn(move || {
            let patience = some_time(Duration::from_millis(60));
            drop(block_on(clock::timeout(patience, manager.lock(&site.name))));
        })
    };
    let steady = {
        let (site, manager) = (site.clone(), manager.clone());
        thread::spawn(move || {
            let lock = block_on(manager.lock(&site.name)).expect("waits as long as it takes");
            work_with(&site, &lock);
            lock.token()
        })
    };
    let mut lock = block_on(manager.lock(&site.name)).expect("waits as long as it takes");
    work_with(&site, &lock);
    let token = lock.token();
    block_on(lock.release());
    assert_eq!(lock.authority(), Authority::None);
    hasty.join().expect("the hasty one found nothing");
    assert_ne!(
        steady.join().expect("the steady one found nothing"),
        token,
        "a token each"
    );
    close(&site, manager);
    check_events(&mut events);
}

/// Two handles of one owner go about when a third is taken: a handle that is had is of a term that goes on.
pub(super) fn last_handle_goes_about_when_one_is_taken() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let manager = manager(&site, Reentrancy::Counted);
    let owner = manager.owner();
    let mut events = manager.events();
    let mut first = block_on(owner.lock(&site.name)).expect("nobody else wants it");
    let taker = {
        let (site, owner) = (site.clone(), owner.clone());
        thread::spawn(move || match block_on(owner.lock(&site.name)) {
            Ok(lock) => Some(lock.token()),
            // It came while another thread of the owner was about to take it.
            Err(LockError::WaitsForItself(_)) => None,
            Err(error) => panic!("{error}"),
        })
    };
    pause(some_time(Duration::from_millis(8)));
    let token = first.token();
    block_on(first.release());
    drop(first);
    let taken = taker.join().expect("the taker found nothing");
    assert!(taken.is_none_or(|taken| taken >= token));
    drop(owner);
    close(&site, manager);
    check_events(&mut events);
}

/// Two handles of one owner are released at once: the last one releases the lock, and neither is told of a
/// loss.
pub(super) fn two_handles_are_released_at_once() {
    // Nothing is late: where a renewal were, the lock could be lost indeed.
    let site = Site::begin(Pace::Patient, Weather::Fair);
    let manager = manager(&site, Reentrancy::Counted);
    let owner = manager.owner();
    let mut events = manager.events();
    let take = || block_on(owner.lock(&site.name)).expect("nobody else wants it");
    let (mut first, mut second) = (take(), take());
    let releaser = thread::spawn(move || block_on(first.release()));
    let releases = [
        block_on(second.release()),
        releaser.join().expect("releasing does not panic"),
    ];
    let still_held = |release: &ReleaseOutcome| matches!(release, ReleaseOutcome::StillHeld { handles: 1 });
    let released = |release: &ReleaseOutcome| matches!(release, ReleaseOutcome::Released);
    assert!(
        releases.iter().any(still_held) && releases.iter().any(released),
        "{releases:?}"
    );
    drop(owner);
    close(&site, manager);
    check_events(&mut events);
}

/// The task that a handle is bound to ends about when the handle is released: it goes once, and another of
/// its owner holds the lock.
pub(super) fn bound_handle_is_released_about_when_its_task_ends() {
    // Nothing is late: where a renewal were, the lock could be lost indeed.
    let site = Site::begin(Pace::Patient, Weather::Fair);
    let manager = manager(&site, Reentrancy::Counted);
    let owner = manager.owner();
    let mut events = manager.events();
    let take = || block_on(owner.lock(&site.name)).expect("nobody else wants it");
    let (mut other, mut bound) = (take(), take());
    let bond = bound.bond();
    let ending = thread::spawn(move || bond.end());
    let found = block_on(bound.release());
    drop(bound);
    ending.join().expect("the end of a task does not panic");
    let went_with_its_task = |loss: &Loss| loss.cause == Cause::GivenBack;
    let is_so = match &found {
        ReleaseOutcome::StillHeld { handles } => *handles == 1,
        ReleaseOutcome::LostBefore(loss) => went_with_its_task(loss),
        ReleaseOutcome::Released | ReleaseOutcome::Unconfirmed(_) => false,
    };
    assert!(is_so, "{found:?}");
    assert_eq!(other.check(), Ok(other.token()));
    assert_eq!(block_on(other.release()), ReleaseOutcome::Released);
    drop(owner);
    close(&site, manager);
    check_events(&mut events);
}

/// A future that has won is polled about when its term is given back for that: what it has then is not given
/// back any more.
pub(super) fn winner_takes_up_about_when_it_is_given_back() {
    let site = Site::begin(any_pace(), Weather::Fair);
    let manager = manager(&site, Reentrancy::Refused);
    let mut events = manager.events();
    let before = block_on(manager.lock(&site.name)).expect("nobody else wants it");
    let mut waiting = Box::pin(manager.lock(&site.name));
    let first = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(before);
    if first.is_ready() {
        // The one before was lost by a late renewal.
        drop((first, waiting));
        return close(&site, manager);
    }
    let ttl = timing().ttl().duration();
    pause(match thread_rng().gen_range(0..4) {
        0 => ttl - ttl / 16,
        1 => ttl + ttl / 16,
        _ => ttl,
    });
    let lock = block_on(waiting).expect("waits as long as it takes");
    work_with(&site, &lock);
    // It may be lost where a renewal was late, and that is another cause.
    let loss = lock.check().err();
    assert!(
        loss.is_none_or(|loss| loss.cause != Cause::GivenBack),
        "it was taken back"
    );
    drop(lock);
    close(&site, manager);
    check_events(&mut events);
}

/// Of those who stand in line for their process's turn, one leaves at any time and one keeps the turn for a
/// while: all others have the lock, and so has another process.
pub(super) fn those_in_a_line_leave_or_keep_the_turn() {
    let site = Site::begin(Pace::Patient, any_weather());
    let (ours, theirs) = (fair(&site, "ours"), fair(&site, "theirs"));
    let hasty = {
        let (site, ours) = (site.clone(), ours.clone());
        thread::spawn(move || {
            let patience = some_time(Duration::from_millis(300));
            drop(block_on(clock::timeout(patience, ours.lock(&site.name))));
        })
    };
    let keeper = {
        let (site, ours) = (site.clone(), ours.clone());
        thread::spawn(move || {
            let turn = block_on(ours.turn(&site.name)).expect("waits as long as it takes");
            pause(some_time(timing().ttl().duration() / 4));
            drop(turn);
        })
    };
    let steady = [ours.clone(), ours.clone(), theirs.clone()].map(|manager| {
        let site = site.clone();
        thread::spawn(move || {
            let mut lock = block_on(manager.lock(&site.name)).expect("waits as long as it takes");
            pause(some_time(Duration::from_millis(30)));
            block_on(lock.release());
        })
    });
    // Somewhere in the line, in a turn or with the lock.
    let mut kept = Box::pin(ours.lock(&site.name));
    let has_had_it = poll_now_and_then(kept.as_mut());
    for thread in [hasty, keeper].into_iter().chain(steady) {
        thread.join().expect("nobody found anything");
    }
    if !has_had_it {
        drop(block_on(kept.as_mut()).expect("waits as long as it takes"));
    }
    drop(kept);
    close_only(theirs);
    close(&site, ours);
}

/// And then no more. Whether it was ready.
fn poll_now_and_then(mut future: Pin<&mut impl Future>) -> bool {
    for _ in 0..thread_rng().gen_range(1..8) {
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            return true;
        }
        pause(some_time(Duration::from_millis(60)));
    }
    false
}

fn fair(site: &Site, candidate: &str) -> Arc<LockManager> {
    let timing = LockTimingOptions::new(timing().ttl().duration());
    let timing = timing.check().expect("a sound timing");
    let builder = LockManager::builder(site.store.clone())
        .candidate(candidate)
        .timing(timing);
    Arc::new(
        builder
            .fairness(Fairness::Fair)
            .build()
            .expect("it fits the store"),
    )
}

fn work_with(site: &Site, lock: &Lock) {
    site.store.begin_work(lock.token());
    pause(some_time(Duration::from_millis(30)));
    site.store.end_work(lock.token());
}

/// Several ask at once, and each may find the driver at rest, driven by another, or about to rest: nobody's
/// wish is forgotten until a timer comes.
pub(super) fn whoever_asks_drives_and_nobody_is_forgotten() {
    let site = Site::begin(Pace::Patient, Weather::Fair);
    let manager = manager(&site, Reentrancy::Refused);
    let began = clock::peek();
    let askers = ["job", "other", "other"].map(|name| {
        let manager = manager.clone();
        thread::spawn(move || {
            let mut lock = block_on(manager.lock(name)).expect("waits as long as it takes");
            assert_eq!(block_on(lock.release()), ReleaseOutcome::Released);
        })
    });
    for asker in askers {
        asker.join().expect("an asker found nothing");
    }
    assert_eq!(clock::peek(), began, "somebody waited for a timer");
    close(&site, manager);
}

/// A manager is closed while somebody waits and somebody holds.
pub(super) fn manager_goes_while_locks_are_held() {
    let site = Site::begin(any_pace(), any_weather());
    let manager = manager(&site, Reentrancy::Refused);
    let owner = manager.owner();
    let lock = block_on(manager.lock(&site.name)).expect("waits as long as it takes");
    site.store.begin_work(lock.token());
    let waiter = {
        let site = site.clone();
        thread::spawn(move || drop(block_on(owner.lock(&site.name))))
    };
    let holder = {
        let site = site.clone();
        thread::spawn(move || {
            pause(some_time(timing().ttl().duration()));
            site.store.end_work(lock.token());
            drop(lock);
        })
    };
    close_only(manager);
    waiter.join().expect("the waiter found nothing");
    holder.join().expect("the holder found nothing");
    site.wait_until_nothing_runs();
    site.check_nothing_is_renewed();
}

fn close_only(manager: Arc<LockManager>) {
    block_on(Arc::into_inner(manager).expect("the last handle").close());
}
