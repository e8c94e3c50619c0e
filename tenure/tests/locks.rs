//! Taking locks, waiting for them, giving them back, on a real store.
use crate::harness::counting::Counting;
use crate::harness::{LONG_BEFORE, PATIENCE, Site, enduring_lock_timing, long_lock_timing, soon};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::contract::Occupancy;
use tenure::{
    Authority, BuildError, LOCKS_MAX, LockError, LockManager, LockTimingOptions, MAX_HOLD_MIN,
    PATIENCE_AT_DROP, ReleaseOutcome,
};
use tenure_testkit::eventually_async;
use tokio::sync::Semaphore;

async fn wait_until_vacant(site: &Site, name: &str) {
    let vacant = || async { site.record(name).await.unwrap().occupancy() == Occupancy::Vacant };
    eventually_async(PATIENCE, "the lock is given back", vacant).await;
}

async fn wait_until_idle(manager: &LockManager) {
    let idle = || async { manager.locks() == 0 };
    eventually_async(PATIENCE, "nobody waits and nobody holds", idle).await;
}

#[tokio::test]
async fn a_lock_is_held_and_released_and_its_token_rises() {
    let site = Site::new();
    let manager = site.manager("a");
    let mut first = soon("the first", manager.lock("orders/7")).await.unwrap();
    assert!(matches!(first.authority(), Authority::Held { .. }));
    assert!(first.remaining() > LONG_BEFORE);
    assert_eq!((first.name().as_str(), manager.locks()), ("orders/7", 1));
    let token = first.token();
    assert_eq!(first.check(), Ok(token));
    assert_eq!(
        soon("the release", first.release()).await,
        ReleaseOutcome::Released
    );
    assert_eq!(
        site.record("orders/7").await.unwrap().occupancy(),
        Occupancy::Vacant
    );
    assert_eq!(manager.locks(), 0);
    let second = soon("the second", manager.lock("orders/7")).await.unwrap();
    assert!(second.token() > token);
}

#[tokio::test]
async fn releasing_twice_answers_the_same_and_the_guard_is_worth_nothing() {
    let site = Site::new();
    let manager = site.manager("a");
    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
    let other = soon("another", manager.lock("a")).await.unwrap();
    assert_eq!(soon("again", lock.release()).await, ReleaseOutcome::Released);
    assert_eq!(
        (lock.authority(), lock.remaining()),
        (Authority::None, Duration::ZERO)
    );
    let refusal = lock.check().unwrap_err().to_string();
    assert!(
        refusal.contains("lease \"a\"") && refusal.contains("released"),
        "{refusal}"
    );
    assert!(
        matches!(other.authority(), Authority::Held { .. }),
        "it is another's now"
    );
}

#[tokio::test]
async fn a_release_that_nobody_waits_for_any_more_is_made_and_can_be_asked_for_again() {
    let site = Site::new();
    let manager = site.manager("a");
    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
    let busy = site.lock();
    assert!(
        tokio::time::timeout(Duration::from_millis(50), lock.release())
            .await
            .is_err()
    );
    assert_eq!(lock.authority(), Authority::None);
    drop(busy);
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
}

#[tokio::test]
async fn one_look_tells_who_holds_it_and_costs_no_wait() {
    let site = Site::new();
    let (ours, theirs) = (site.manager("ours"), site.manager("theirs"));
    let lock = soon("their lock", theirs.lock("a")).await.unwrap();
    let began = Instant::now();
    match soon("one look", ours.try_lock("a")).await {
        Err(LockError::Held(lease)) => {
            assert_eq!((lease.holder.id.as_str(), lease.token), ("theirs", lock.token()))
        }
        other => panic!("{other:?}"),
    }
    assert!(began.elapsed() < LONG_BEFORE, "{:?}", began.elapsed());
    assert!(matches!(
        soon("at home", theirs.try_lock("a")).await,
        Err(LockError::HeldHere(_))
    ));
    drop(lock);
    wait_until_vacant(&site, "a").await;
    drop(soon("the next look", ours.try_lock("a")).await.unwrap());
}

#[tokio::test]
async fn a_bounded_wait_ends_in_time_and_leaves_nothing_behind() {
    let site = Site::new();
    let (ours, theirs) = (site.manager("ours"), site.manager("theirs"));
    let lock = soon("their lock", theirs.lock("a")).await.unwrap();
    let began = Instant::now();
    let outcome = soon("the wait", ours.try_lock_for("a", Duration::from_millis(300))).await;
    assert!(matches!(outcome, Err(LockError::TimedOut { .. })), "{outcome:?}");
    // Their lock is extended for as long as it is there: a wait without an end would go on.
    assert!((Duration::from_millis(300)..Duration::from_secs(20)).contains(&began.elapsed()));
    wait_until_idle(&ours).await;
    drop(lock);
    wait_until_vacant(&site, "a").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        site.record("a").await.unwrap().occupancy(),
        Occupancy::Vacant,
        "nobody wants it"
    );
    drop(
        soon("in time", ours.try_lock_for("a", Duration::from_secs(10)))
            .await
            .unwrap(),
    );
}

#[tokio::test]
async fn a_release_wakes_whoever_waits_elsewhere_long_before_the_lock_would_end() {
    let site = Site::new();
    let (ours, theirs) = (site.manager("ours"), site.manager("theirs"));
    let lock = soon("their lock", theirs.lock("a")).await.unwrap();
    let waiting = tokio::spawn(async move { (ours.lock("a").await, ours) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    let released_at = Instant::now();
    drop(lock);
    let (lock, _ours) = soon("the hand-over", waiting).await.unwrap();
    drop(lock.unwrap());
    assert!(released_at.elapsed() < LONG_BEFORE, "{:?}", released_at.elapsed());
}

#[tokio::test]
async fn whoever_waits_in_one_process_stands_in_line() {
    let site = Site::new();
    let manager = Arc::new(site.manager("a"));
    let first = soon("the first", manager.lock("a")).await.unwrap();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for number in 0..8 {
        let (manager, order) = (manager.clone(), order.clone());
        waiting.push(tokio::spawn(async move {
            let mut lock = manager.lock("a").await.unwrap();
            order.lock().unwrap().push((number, lock.token()));
            lock.release().await
        }));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // One of those in the middle leaves; the others keep their places.
    waiting[3].abort();
    drop(first);
    for (number, task) in waiting.into_iter().enumerate() {
        let outcome = soon("its turn", task).await;
        assert_eq!(outcome.is_err(), number == 3, "{outcome:?}");
    }
    let order = order.lock().unwrap();
    let numbers: Vec<u32> = order.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 4, 5, 6, 7]);
    assert!(
        order.is_sorted_by_key(|(_, token)| *token),
        "a token each: {order:?}"
    );
}

#[tokio::test]
async fn a_dropped_attempt_leaves_nothing_held_whenever_it_is_dropped() {
    let site = Site::new();
    let mut store = Counting::new(site.store());
    // Else a fast disk has answered before anybody can leave.
    store.delay = Duration::from_millis(2);
    let builder = LockManager::builder(Arc::new(store)).candidate("hasty");
    let manager = builder.timing(long_lock_timing()).build().unwrap();
    let measured = Instant::now();
    drop(soon("the first", manager.lock("measured")).await.unwrap());
    // From nothing to twice what a grant takes on this machine.
    let step = measured.elapsed() / 30;
    let mut dropped = 0;
    for round in 0..60_u32 {
        let name = format!("lock/{}", round % 3);
        let lock = tokio::time::timeout(round * step, manager.lock(&name)).await;
        dropped += u32::from(lock.is_err());
    }
    wait_until_idle(&manager).await;
    soon("closing", manager.close()).await;
    let mut terms = 0;
    for number in 0..3 {
        if let Some(lease) = site.record(&format!("lock/{number}")).await {
            assert_ne!(lease.occupancy(), Occupancy::Held, "{lease:?}");
            terms += lease.terms;
        }
    }
    assert!(
        dropped > 0 && terms > 0,
        "{dropped} were dropped, {terms} granted"
    );
}

#[tokio::test]
async fn drop_panic_and_abort_release() {
    let site = Site::new();
    let manager = Arc::new(site.manager("a"));
    drop(soon("dropped", manager.lock("dropped")).await.unwrap());
    let lock = soon("panics", manager.lock("panics")).await.unwrap();
    let panics = tokio::spawn(async move {
        let _lock = lock;
        panic!("on purpose");
    });
    assert!(panics.await.unwrap_err().is_panic());
    let lock = soon("aborted", manager.lock("aborted")).await.unwrap();
    let aborted = tokio::spawn(async move {
        let _lock = lock;
        std::future::pending::<()>().await;
    });
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    for name in ["dropped", "panics", "aborted"] {
        wait_until_vacant(&site, name).await;
    }
}

#[tokio::test]
async fn a_leaked_guard_is_released_when_its_task_has_ended() {
    let site = Site::new();
    let timing = enduring_lock_timing();
    let manager = site.manager_builder("a").timing(timing).build().unwrap();
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(async move { drop(gone.await) });
    let lock = soon("bound", manager.lock("bound"))
        .await
        .unwrap()
        .bound_to(&task);
    std::mem::forget(lock);
    // It is extended for as long as the task lives.
    tokio::time::sleep(2 * timing.lease().ttl().duration()).await;
    assert_eq!(site.record("bound").await.unwrap().occupancy(), Occupancy::Held);
    go.send(()).unwrap();
    wait_until_vacant(&site, "bound").await;
    assert_eq!(manager.locks(), 0, "its place is free again");
}

#[tokio::test]
async fn a_guard_that_its_own_task_leaks_is_released_at_once() {
    let site = Site::new();
    let manager = site.manager("a");
    let lock = soon("spawned", manager.lock("spawned")).await.unwrap();
    let began = Instant::now();
    let task = lock.spawn(|lock| async move {
        let token = lock.token();
        std::mem::forget(lock);
        token
    });
    let token = task.await.unwrap();
    wait_until_vacant(&site, "spawned").await;
    // What is bound to a task is looked at once in a beat.
    assert!(
        began.elapsed() < long_lock_timing().lease().renew_every(),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(site.record("spawned").await.unwrap().token, token);
}

#[tokio::test]
async fn a_lock_is_not_extended_past_its_longest_hold() {
    let site = Site::new();
    let timing = enduring_lock_timing();
    // Longer than the ttl: it is extended, and then it is not.
    let max_hold = timing.lease().ttl().duration() + Duration::from_secs(1);
    let builder = site.manager_builder("a").timing(timing).max_hold(max_hold);
    let manager = builder.build().unwrap();
    let began = Instant::now();
    let lock = soon("the lock", manager.lock("a")).await.unwrap();
    let loss = soon("the loss", lock.lost()).await;
    let held_for = began.elapsed();
    assert!(held_for >= max_hold, "{held_for:?}");
    // By the store's clock, however late this process hears of its loss.
    let record = site.record("a").await.unwrap();
    assert!(record.held_for - record.renewed_ago <= max_hold, "{record:?}");
    assert!(loss.to_string().contains("max_hold"), "{loss}");
    let next = soon("the next", manager.lock("a")).await.unwrap();
    assert!(next.token() > lock.token());
}

#[tokio::test]
async fn one_lock_more_than_the_bound_is_refused_and_a_release_makes_room() {
    assert_eq!(LOCKS_MAX, 100_000, "the bound, unless another is set");
    let site = Site::new();
    let manager = site.manager_builder("a").locks_max(3).build().unwrap();
    let mut locks = Vec::new();
    for number in 0..3 {
        locks.push(soon("a lock", manager.lock(format!("{number}"))).await.unwrap());
    }
    let refusal = soon("one more", manager.lock("more")).await.unwrap_err();
    assert_eq!(refusal.to_string().matches('3').count(), 1, "{refusal}");
    assert!(matches!(refusal, LockError::TooMany { locks_max: 3, .. }));
    assert_eq!(
        soon("the release", locks.pop().unwrap().release()).await,
        ReleaseOutcome::Released
    );
    drop(soon("one more", manager.lock("more")).await.unwrap());
}

#[tokio::test]
async fn a_manager_that_goes_before_its_locks_does_not_wait_for_them() {
    /// On a machine that stands still one may take as long as if it had waited.
    const DROPS_MAX: u32 = 5;
    let site = Site::new();
    let waits_for_nothing = async || {
        let manager = site
            .manager_builder("a")
            .timing(long_lock_timing())
            .build()
            .unwrap();
        let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
        let began = Instant::now();
        drop(manager);
        let waited = began.elapsed();
        lock.release().await;
        waited < PATIENCE_AT_DROP
    };
    for _drop in 0..DROPS_MAX {
        if waits_for_nothing().await {
            return;
        }
    }
    panic!("each waited for {PATIENCE_AT_DROP:?}");
}

#[tokio::test]
async fn a_stopped_manager_refuses_and_its_locks_go_on() {
    let site = Site::new();
    let timing = enduring_lock_timing();
    let manager = site.manager_builder("a").timing(timing).build().unwrap();
    let owner = manager.owner();
    let mut lock = soon("the lock", manager.lock("a")).await.unwrap();
    let waiting = owner.clone();
    let waiting = tokio::spawn(async move { waiting.lock("a").await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(manager);
    assert!(matches!(
        soon("who waits", waiting).await.unwrap(),
        Err(LockError::Stopped(_))
    ));
    let refusal = soon("a new one", owner.lock("b")).await.unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("lock \"b\": the lock manager has stopped"),
        "{refusal}"
    );
    tokio::time::sleep(2 * timing.lease().ttl().duration()).await;
    assert!(
        matches!(lock.authority(), Authority::Held { .. }),
        "it is extended until it goes"
    );
    assert_eq!(
        soon("the release", lock.release()).await,
        ReleaseOutcome::Released
    );
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    let site = Site::new();
    let manager = site.manager("a");
    for name in ["", " a", "a//b", "a\n"] {
        assert!(
            matches!(manager.lock(name).await, Err(LockError::Name(_))),
            "{name:?}"
        );
    }
    let message = LockManager::builder(site.store())
        .owner_tag("a/b")
        .build()
        .unwrap_err();
    assert!(message.to_string().contains("owner tag"), "{message}");
}

/// The request of a dropped attempt reaches the store only after the attempt was given up: then it is too
/// late to look.
#[tokio::test]
async fn what_a_dropped_attempt_takes_later_is_given_back() {
    let site = Site::new();
    let store = Arc::new(Counting::new(site.store()));
    store.acquires.forget_permits(Semaphore::MAX_PERMITS);
    // The driver waits for the request's answer: for 30 s with this ttl, so that a machine that stands still
    // does not drop it.
    let timing = LockTimingOptions::new(Duration::from_secs(300));
    let manager = LockManager::builder(store.clone())
        .timing(timing.check().unwrap())
        .build()
        .unwrap();
    let is_sent = || async { store.acquisitions() == 1 };
    tokio::select! {
        taken = manager.lock("a") => panic!("{taken:?}"),
        () = eventually_async(PATIENCE, "the request is sent", is_sent) => {}
    }
    assert!(site.record("a").await.is_none());
    // Long enough for the driver to hear of it, if nothing else is slow.
    tokio::time::sleep(Duration::from_millis(50)).await;
    store.acquires.add_permits(1);
    let given_back = || async {
        let record = site.record("a").await;
        record.is_some_and(|lease| lease.occupancy() == Occupancy::Vacant)
    };
    eventually_async(PATIENCE, "it is given back", given_back).await;
}

#[tokio::test]
async fn a_lock_whose_task_has_ended_is_handed_on_to_whoever_waits_here() {
    let site = Site::new();
    let store = Arc::new(Counting::new(site.store()));
    let manager = LockManager::builder(store.clone())
        .timing(enduring_lock_timing())
        .build()
        .unwrap();
    let task = tokio::spawn(async {});
    let lock = soon("the lock", manager.lock("a")).await.unwrap().bound_to(&task);
    std::mem::forget(lock);
    let _next = soon("the next", manager.lock("a")).await.unwrap();
    assert_eq!((store.acquisitions(), store.releases()), (2, 0));
}

#[tokio::test]
async fn a_ttl_beyond_all_bounds_is_refused_in_words() {
    let options = LockTimingOptions {
        step_allowance: Some(Duration::MAX),
        ..LockTimingOptions::new(Duration::MAX)
    };
    assert!(options.check().is_err());
}

#[tokio::test]
async fn a_longest_hold_that_no_winner_could_wake_up_in_is_refused_in_words() {
    let site = Site::new();
    let build = |max_hold| site.manager_builder("a").max_hold(max_hold).build();
    for too_short in [Duration::ZERO, MAX_HOLD_MIN - Duration::from_nanos(1)] {
        let refusal = build(too_short).unwrap_err();
        assert!(matches!(refusal, BuildError::MaxHold(given) if given == too_short));
        let line = refusal.to_string();
        let names = [format!("{too_short:?}"), format!("{MAX_HOLD_MIN:?}")];
        assert!(names.iter().all(|name| line.contains(name)), "{line}");
    }
    let manager = build(MAX_HOLD_MIN).unwrap();
    drop(soon("the shortest", manager.lock("a")).await.unwrap());
}
