use crate::Loss;
use std::fmt;
use tenure_core::{Cause, FencingToken, Lease, Occupancy, StoreError};

/// What became of a lease that was given back: by [`Leadership::step_down`](crate::Leadership::step_down) or
/// [`Lock::release`](crate::Lock::release).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// This holder has it no more: it is free, or with whoever waited next in this process.
    Released,
    /// It was lost before: nothing was released. What was written since then may have been refused by a
    /// fence.
    LostBefore(Loss),
    /// Nobody knows whether it was released or had ended before: the store did not answer until the lease has
    /// surely expired by itself, or said what only a person can mend, after which it is not asked again; or
    /// the answer to the release was lost and the next one found the lease to be another's; or the thread
    /// that renews it is gone. Others may have to wait for its ttl.
    Unconfirmed(StoreError),
    /// Of a lock: the same owner has so many more handles, and holds it until the last of them goes.
    StillHeld {
        /// How many.
        handles: u64,
    },
}

impl fmt::Display for ReleaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("released"),
            Self::LostBefore(loss) => write!(f, "not released: {loss}"),
            Self::Unconfirmed(error) => write!(f, "unconfirmed: {error}"),
            Self::StillHeld { handles } => write!(f, "still held by {handles} more of its owner"),
        }
    }
}

/// Why a term is over of which the store says that it is not the lease's any more.
pub(crate) fn cause_of_loss(now: Option<&Lease>, token: FencingToken) -> Cause {
    match now {
        Some(lease) if lease.token != token => Cause::Succeeded {
            token: lease.token,
            by: (lease.occupancy() == Occupancy::Held).then(|| lease.holder.clone()),
        },
        Some(_) | None => Cause::Vanished,
    }
}
