//! Owners, who never wait for themselves.
use crate::harness::{Site, enduring_lock_timing, soon};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;
use tenure::contract::Occupancy;
use tenure::{Authority, Cause, LockError, LockTimingOptions, Reentrancy, ReleaseOutcome};
use tenure_testkit::eventually_async;

#[tokio::test]
async fn an_owner_that_would_wait_for_itself_is_told_at_once() {
    let site = Site::new();
    let manager = site.manager("a");
    let owner = manager.owner();
    let lock = soon("the lock", owner.lock("a")).await.unwrap();
    let refusal = soon("again", owner.clone().lock("a")).await.unwrap_err();
    assert!(matches!(refusal, LockError::WaitsForItself(_)), "{refusal}");
    assert!(refusal.to_string().contains("Reentrancy::Counted"), "{refusal}");
    // Another owner waits like anyone else, and so does the manager.
    let other = manager.owner();
    let outcome = other.try_lock_for("a", Duration::from_millis(100)).await;
    assert!(matches!(outcome, Err(LockError::TimedOut { .. })), "{outcome:?}");
    drop(lock);
    drop(soon("the next", owner.lock("a")).await.unwrap());
}

#[tokio::test]
async fn an_owner_that_waits_already_is_told_at_once() {
    let site = Site::new();
    let manager = site.manager("a");
    let blocker = soon("the blocker", manager.lock("a")).await.unwrap();
    let owner = manager.owner();
    let waiting = owner.clone();
    let waiting = tokio::spawn(async move { waiting.lock("a").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(matches!(
        soon("again", owner.lock("a")).await,
        Err(LockError::WaitsForItself(_))
    ));
    waiting.abort();
    drop(waiting.await);
    drop(blocker);
    drop(
        soon("after the attempt has ended", owner.lock("a"))
            .await
            .unwrap(),
    );
}

#[tokio::test]
async fn counted_handles_share_a_token_and_the_last_one_releases() {
    let site = Site::new();
    let manager = site
        .manager_builder("a")
        .reentrancy(Reentrancy::Counted)
        .build()
        .unwrap();
    let owner = manager.owner();
    let mut outer = soon("the outer", owner.lock("a")).await.unwrap();
    let inner = soon("the inner", owner.lock("a")).await.unwrap();
    let mut third = soon("one look", owner.try_lock("a")).await.unwrap();
    assert_eq!(
        (inner.token(), third.token(), manager.locks()),
        (outer.token(), outer.token(), 1)
    );
    assert_eq!(
        soon("early", outer.release()).await,
        ReleaseOutcome::StillHeld { handles: 2 }
    );
    assert_eq!(outer.authority(), Authority::None, "this handle was released");
    assert_eq!(outer.remaining(), Duration::ZERO);
    soon("doubt", outer.doubted()).await;
    assert_eq!(soon("its end", outer.lost()).await.cause, Cause::GivenBack);
    let guarded = soon("its work", outer.guard(std::future::pending::<()>())).await;
    assert_eq!(guarded.unwrap_err().cause, Cause::GivenBack);
    drop((outer, inner));
    assert!(matches!(third.authority(), Authority::Held { .. }));
    assert_eq!(site.record("a").await.unwrap().occupancy(), Occupancy::Held);
    assert_eq!(soon("the last", third.release()).await, ReleaseOutcome::Released);
    assert_eq!(site.record("a").await.unwrap().occupancy(), Occupancy::Vacant);
    let next = soon("a new one", owner.lock("a")).await.unwrap();
    assert!(next.token() > third.token(), "given back, so it is another term");
}

#[tokio::test]
async fn a_handle_that_goes_with_its_task_leaves_the_lock_to_the_other_handles_of_its_owner() {
    let site = Site::new();
    let manager = site
        .manager_builder("a")
        .timing(enduring_lock_timing())
        .reentrancy(Reentrancy::Counted)
        .build()
        .unwrap();
    let owner = manager.owner();
    let mut outer = soon("the outer", owner.lock("a")).await.unwrap();
    let spawned = soon("one for a task", owner.lock("a")).await.unwrap();
    let leaking = spawned.spawn(|lock| async move { std::mem::forget(lock) });
    soon("the task", leaking).await.unwrap();
    assert_eq!(
        outer.check(),
        Ok(outer.token()),
        "a task of the same owner has ended"
    );
    let ended = tokio::spawn(async {});
    let mut bound = soon("one more", owner.lock("a")).await.unwrap().bound_to(&ended);
    // Work on it is dropped when the beat finds that its task has ended, and makes no step after that.
    let steps_too_late = AtomicU32::new(0);
    let work = poll_fn(|_| {
        if bound.authority() == Authority::None {
            steps_too_late.fetch_add(1, Ordering::SeqCst);
        }
        Poll::<()>::Pending
    });
    let guarded = soon("its end", bound.guard(work)).await;
    assert_eq!(guarded.unwrap_err().cause, Cause::GivenBack);
    assert_eq!(steps_too_late.into_inner(), 0);
    assert_eq!(
        (bound.authority(), bound.remaining()),
        (Authority::None, Duration::ZERO)
    );
    assert_eq!(soon("its loss", bound.lost()).await.cause, Cause::GivenBack);
    soon("its doubt", bound.doubted()).await;
    assert_eq!(bound.check().unwrap_err().cause, Cause::GivenBack);
    let found = soon("its release", bound.release()).await;
    assert!(matches!(found, ReleaseOutcome::LostBefore(_)), "{found:?}");
    assert_eq!(
        outer.check(),
        Ok(outer.token()),
        "what another handle was bound to has ended"
    );
    assert_eq!(site.record("a").await.unwrap().occupancy(), Occupancy::Held);
    assert_eq!(soon("the last", outer.release()).await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn each_handle_of_an_owner_goes_once_by_its_task_or_by_its_release() {
    let site = Site::new();
    let manager = site
        .manager_builder("a")
        .timing(enduring_lock_timing())
        .reentrancy(Reentrancy::Counted)
        .build()
        .unwrap();
    let owner = manager.owner();
    let outer = soon("the outer", owner.lock("a")).await.unwrap();
    // Released and then bound, bound and then released, and released within its task.
    let ended = tokio::spawn(async {});
    let mut released = soon("one more", owner.lock("a")).await.unwrap();
    soon("its release", released.release()).await;
    let _bound_too_late = released.bound_to(&ended).bound_to(&ended);
    let mut bound = soon("one more", owner.lock("a")).await.unwrap().bound_to(&ended);
    soon("its release", bound.release()).await;
    let in_task = soon("one more", owner.lock("a")).await.unwrap();
    let task = in_task.spawn(|mut lock| async move { (lock.release().await, lock) });
    drop(soon("the task", task).await.unwrap());
    // Longer than until what is bound has been looked at.
    tokio::time::sleep(3 * manager.timing().lease().renew_every()).await;
    assert_eq!(outer.check(), Ok(outer.token()));
    // With the last one, which ends with its task, the lock is free.
    let last = soon("the last", owner.lock("a")).await.unwrap();
    assert_eq!(last.token(), outer.token());
    drop(outer);
    std::mem::forget(last.bound_to(&ended));
    let is_released = async || site.record("a").await.unwrap().occupancy() == Occupancy::Vacant;
    eventually_async(Duration::from_secs(20), "it is released", is_released).await;
}

#[tokio::test]
async fn one_more_handle_extends_the_lock_long_before_the_next_beat() {
    let site = Site::new();
    // A beat in 80 s, and an extension on demand from 10 s on.
    let timing = LockTimingOptions::new(Duration::from_secs(240)).check().unwrap();
    let manager = site
        .manager_builder("a")
        .timing(timing)
        .reentrancy(Reentrancy::Counted)
        .build()
        .unwrap();
    let owner = manager.owner();
    let outer = soon("the outer", owner.lock("a")).await.unwrap();
    let before = outer.until();
    drop(soon("too soon", owner.lock("a")).await.unwrap());
    tokio::time::sleep(Duration::from_millis(10_100)).await;
    assert_eq!(outer.until(), before, "it was taken a moment before");
    let _inner = soon("the inner", owner.lock("a")).await.unwrap();
    let extended = async {
        while outer.until() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("extended on demand, and long before the beat", extended).await;
}

/// So short that a test may wait for the loss.
const MAX_HOLD: Duration = Duration::from_secs(1);

#[tokio::test]
async fn an_owner_whose_lock_was_lost_takes_it_anew_and_extends_nothing() {
    let site = Site::new();
    let manager = site
        .manager_builder("a")
        .reentrancy(Reentrancy::Counted)
        .max_hold(MAX_HOLD)
        .build()
        .unwrap();
    let owner = manager.owner();
    let lost = soon("the lock", owner.lock("a")).await.unwrap();
    soon("the loss", lost.lost()).await;
    let mut next = soon("anew", owner.lock("a")).await.unwrap();
    assert!(next.token() > lost.token());
    assert_eq!(lost.authority(), Authority::None);
    drop(lost);
    // A loaded machine may have lost that one, too, before there is another handle.
    for _handle in 0..10 {
        let another = soon("another handle", owner.lock("a")).await.unwrap();
        if another.token() == next.token() {
            return;
        }
        next = another;
    }
    panic!("each handle was another term");
}

#[tokio::test]
async fn each_of_several_handles_that_is_released_after_a_loss_says_so() {
    let site = Site::new();
    let manager = site
        .manager_builder("a")
        .reentrancy(Reentrancy::Counted)
        .max_hold(MAX_HOLD)
        .build()
        .unwrap();
    let owner = manager.owner();
    let mut first = soon("the lock", owner.lock("a")).await.unwrap();
    // A loaded machine may have lost it before there are three.
    let mut handles = Vec::new();
    while handles.len() < 2 {
        let handle = soon("one more", owner.lock("a")).await.unwrap();
        if handle.token() != first.token() {
            first = handle;
            handles.clear();
        } else {
            handles.push(handle);
        }
    }
    soon("the loss", first.lost()).await;
    for handle in handles.iter_mut().chain([&mut first]) {
        let found = soon("a release", handle.release()).await;
        let ReleaseOutcome::LostBefore(loss) = found else {
            panic!("{found:?}");
        };
        assert_eq!(soon("its loss", handle.lost()).await, loss);
        let guarded = soon("its end", handle.guard(std::future::ready(()))).await;
        assert_eq!((guarded, handle.check()), (Err(loss.clone()), Err(loss)));
    }
}
