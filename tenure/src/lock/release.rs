use super::LockLoss;
use crate::driver::Departed;
use tenure_core::{Cause, Departure, FencingToken, Lease, Occupancy, Released, StoreError};

/// What a release has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockRelease {
    /// This holder has it no more: it is free, or with whoever waited next in this process.
    Released,
    /// It was lost before: nothing was released. What was written since then may have been refused by a fence.
    LostBefore(LockLoss),
    /// Nobody knows whether it was released or had ended before: the store did not answer until the lock has surely
    /// expired by itself, or said what only a person can mend, after which it is not asked again; or the answer to the release
    /// was lost and the next one found the lock to be another's.
    Unconfirmed(StoreError),
    /// The same owner has so many more handles, and holds it until the last of them goes.
    StillHeld {
        /// How many.
        handles: u64,
    },
}

impl LockRelease {
    /// `loss` tells of it by a cause, or by the one that is known of the term.
    pub(super) fn of(
        departed: Departed,
        token: FencingToken,
        loss: impl FnOnce(Option<Cause>) -> LockLoss,
    ) -> Self {
        match (departed.departure, departed.unheard) {
            (Departure::Answered(Released::Vacated), _) => Self::Released,
            // Most likely it was given back, and somebody has taken it since.
            (Departure::Answered(Released::NotYours(_)), Some(error)) => Self::Unconfirmed(error),
            (Departure::Answered(Released::NotYours(now)), None) => {
                Self::LostBefore(loss(Some(cause_of_loss(now.as_deref(), token))))
            }
            (Departure::Unconfirmed(None), _) => Self::LostBefore(loss(None)),
            (Departure::Unconfirmed(Some(error)), _) => Self::Unconfirmed(error),
        }
    }
}

fn cause_of_loss(now: Option<&Lease>, token: FencingToken) -> Cause {
    match now {
        Some(lease) if lease.token != token => Cause::Succeeded {
            token: lease.token,
            by: (lease.occupancy() == Occupancy::Held).then(|| lease.holder.clone()),
        },
        Some(_) | None => Cause::Vanished,
    }
}
