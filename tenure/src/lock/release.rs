use super::LockLoss;
use tenure_core::{Departure, Released, StoreError};

/// What a release has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockRelease {
    /// This holder has it no more: it is free, or with whoever waited next in this process.
    Released,
    /// It was lost before: nothing was released. What was written since then may have been refused by a fence.
    LostBefore(LockLoss),
    /// The store did not answer until the lock has surely expired by itself.
    Unconfirmed(StoreError),
    /// The same owner has so many more handles, and holds it until the last of them goes.
    StillHeld {
        /// How many.
        handles: u64,
    },
}

impl LockRelease {
    pub(super) fn of(departure: Departure, loss: impl FnOnce() -> LockLoss) -> Self {
        match departure {
            Departure::Answered(Released::Vacated) => Self::Released,
            Departure::Answered(Released::NotYours(_)) | Departure::Unconfirmed(None) => {
                Self::LostBefore(loss())
            }
            Departure::Unconfirmed(Some(error)) => Self::Unconfirmed(error),
        }
    }
}
