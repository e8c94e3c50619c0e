//! Who has no time to wait.
use crate::harness::{Site, soon};
use std::time::Duration;
use tenure::{LockError, LockRelease};

/// With no time at all there is one look, and a store that needs longer than somebody is patient is no reason to refuse.
#[tokio::test]
async fn a_free_lock_is_had_with_no_patience_and_one_that_is_held_is_not() {
    let site = Site::new();
    let (ours, theirs) = (site.manager("ours"), site.manager("theirs"));
    for patience in [Duration::ZERO, Duration::from_micros(50)] {
        let mut lock = soon("a free one", ours.try_lock_for("a", patience))
            .await
            .unwrap();
        let owner = theirs.owner();
        for outcome in [
            soon("elsewhere", theirs.try_lock_for("a", patience)).await,
            soon("an owner", owner.try_lock_for("a", patience)).await,
            soon("here", ours.try_lock_for("a", patience)).await,
        ] {
            assert!(matches!(outcome, Err(LockError::TimedOut { .. })), "{outcome:?}");
        }
        assert_eq!(soon("the release", lock.release()).await, LockRelease::Released);
    }
}
