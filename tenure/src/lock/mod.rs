//! Locks: many leases in one process, with one heart.

mod acquire;
mod announce;
mod announce_place;
mod bond;
mod builder;
mod error;
mod fair;
mod guard;
mod line;
mod manager;
mod owner;
mod patience;
mod standby;
mod tag;
mod timing;
mod watched;

// For the documentation of the log.
#[cfg(all(test, feature = "metrics"))]
pub(crate) use announce::announce;
pub(crate) use announce_place::announce_place;
#[cfg(all(test, feature = "metrics"))]
pub(crate) use announce_place::announce_unread;
pub(crate) use bond::Bond;
pub use builder::{LOCKS_MAX, LockManagerBuilder, MAX_HOLD_MIN};
pub use error::LockError;
pub use fair::{Fairness, Turn};
pub use guard::Lock;
pub use manager::LockManager;
pub use owner::{LockOwner, Reentrancy};
pub(crate) use standby::CANDIDATES;
pub use standby::Standby;
pub use tag::OwnerTag;
pub use timing::{LockTiming, LockTimingOptions};
