//! How many locks a manager takes at once, and what keeps it from taking more.
use crate::harness::{Site, soon};
use tenure::LockError;

#[tokio::test]
async fn a_lock_that_was_dropped_makes_room_for_the_next_at_once() {
    let site = Site::new();
    let manager = site.manager_builder("a").locks_max(1).build().unwrap();
    for round in 0..100 {
        drop(soon("a lock", manager.lock(format!("{round}"))).await.unwrap());
        drop(
            soon("a look", manager.try_lock(format!("look/{round}")))
                .await
                .unwrap(),
        );
    }
    let _held = soon("a lock", manager.lock("held")).await.unwrap();
    let refusal = soon("one more", manager.lock("more")).await.unwrap_err();
    assert!(
        matches!(refusal, LockError::TooMany { locks_max: 1, .. }),
        "{refusal}"
    );
}
