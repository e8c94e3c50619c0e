//! Waiting for a lock for a while, and saying what stood in the way when that is over.

use super::acquire::Shared;
use super::{Fairness, LockError};
use crate::clock;
use crate::driver::{Message, Obstacle, Queueing};
use crate::held::HeldTerm;
use crate::sync::{oneshot, timeout};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{LeaseName, Moment, StoreError};

/// Requests that one look is made of, one after another: who waits in order, whose the name is, and the
/// attempt.
const LOOK_REQUESTS_MAX: u32 = 3;

/// Longest wait for the driver to tell what stood in the way: it may hang in a file's disk.
const TELLING_TIME_MAX: Duration = Duration::from_millis(100);

impl Shared {
    /// Takes the lock; `None` for the patience waits as long as it takes.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        name: &LeaseName,
        queueing: Queueing,
        patience: Option<Duration>,
    ) -> Result<HeldTerm, LockError> {
        let Some(patience) = patience else {
            return self.take(name, queueing).await;
        };
        let (began, look_max) = (clock::now(), self.timing.lease().request_timeout());
        let left = || patience.saturating_sub(clock::now().since(began));
        let mut met = None;
        // A store may need longer for one answer than somebody is patient: a free lock is had all the same.
        if patience < look_max {
            // Each of its requests has a bound of its own; this one is for their sum, and for who is before
            // it here.
            let looked = timeout(look_max * LOOK_REQUESTS_MAX, self.take(name, Queueing::OneLook)).await;
            met = match looked {
                Ok(Err(LockError::Held(lease))) => Some(Obstacle::Held(lease)),
                Ok(Err(LockError::HeldHere(_) | LockError::OthersWait(_))) | Err(_) => None,
                // A failing store does not end a wait, for which there must be time.
                Ok(Err(LockError::Store(error))) if !left().is_zero() && !error.fault.is_final() => {
                    Some(Obstacle::Store(error))
                }
                Ok(outcome) => return outcome,
            };
        }
        let left = left();
        if !left.is_zero() {
            let mut taking = pin!(self.take(name, queueing));
            if let Ok(outcome) = timeout(left, &mut taking).await {
                return outcome;
            }
            // While it still waits: what is known of those who wait goes with the last of them.
            met = self.obstacle(name).await.or(met);
            // Whoever waits for one who holds the lock, or for one before it, asks the store nothing for as
            // long as that may last: of its death it has not heard. After a short patience, it just has.
            let is_failing = matches!(met, Some(Obstacle::Store(_)));
            if !is_failing
                && patience >= look_max
                && let Err(error) = self.look(name).await
            {
                met = Some(Obstacle::Store(error));
            }
        }
        Err(gave_up(name, met, began))
    }

    /// What stands between this process and the lock; `None` where that is another of this process, or others
    /// of the queue.
    async fn obstacle(&self, name: &LeaseName) -> Option<Obstacle> {
        if self.fairness == Fairness::Fair {
            if let Some(error) = self.lines.trouble(name) {
                return Some(Obstacle::Store(error));
            }
            let place = self.place_in_queue(name).ok()?;
            // Another process of the same id may have the place: that is nobody who has the lock.
            if let Some(Obstacle::Store(error)) = self.obstacle_of(&place).await {
                return Some(Obstacle::Store(error));
            }
        }
        self.obstacle_of(name).await
    }

    async fn obstacle_of(&self, name: &LeaseName) -> Option<Obstacle> {
        let (told, answer) = oneshot::channel();
        let name = name.clone();
        // Told, not asked: that would drive it here, for as long as its store takes.
        self.driver.tell(Message::Obstacle { name, told }).ok()?;
        timeout(TELLING_TIME_MAX, answer).await.ok()?.ok()?
    }
}

fn gave_up(name: &LeaseName, met: Option<Obstacle>, began: Moment) -> LockError {
    let waited = clock::now().since(began);
    let held_by = match met {
        Some(Obstacle::Store(error)) => {
            return LockError::Store(StoreError {
                message: format!("{}; gave up after {waited:.1?}", error.message),
                ..error
            });
        }
        Some(Obstacle::Held(lease)) => Some(lease),
        None => None,
    };
    LockError::TimedOut {
        name: name.clone(),
        waited,
        held_by,
    }
}
