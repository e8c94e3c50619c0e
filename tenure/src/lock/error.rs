use std::fmt;
use std::time::Duration;
use tenure_core::{CandidateId, Lease, LeaseName, NameError, StoreError};

/// Why a lock was not taken. Nothing is held: what an attempt may have taken unnoticed is found and released.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockError {
    /// The name is no name of a lease.
    Name(NameError),
    /// Another process holds it, and one look was all that was asked for.
    Held(Box<Lease>),
    /// This manager holds it or waits for it, and one look was all that was asked for.
    HeldHere(LeaseName),
    /// Others wait for it in the queue, or may at any time before this one, which has
    /// [`Priority::NEVER`](tenure_core::Priority::NEVER); and one look was all that was asked for.
    OthersWait(LeaseName),
    /// Its turn has not come in the time that was asked for, in which the store did not fail to the end.
    TimedOut {
        /// The lock.
        name: LeaseName,
        /// How long it was waited for.
        waited: Duration,
        /// The other process that held it when it was last seen; `None` where one of this process has it, or
        /// others come first in the queue.
        held_by: Option<Box<Lease>>,
    },
    /// The same owner holds it or is about to take it: it would wait for itself.
    WaitsForItself(LeaseName),
    /// The manager holds, or waits for, as many as it may.
    TooMany {
        /// The lock.
        name: LeaseName,
        /// How many it may.
        locks_max: u64,
    },
    /// Another application uses the name.
    OtherApplication {
        /// The lock.
        name: LeaseName,
        /// Whose it is, or was last.
        holder: CandidateId,
    },
    /// The store failed: an operator must act first, or it was one look, or it still failed, or had not
    /// answered, when the time that was asked for was over.
    Store(StoreError),
    /// The manager was closed or dropped, or its thread is gone.
    Stopped(LeaseName),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Held(lease) => write!(
                f,
                "lock \"{}\": held by {}, token {}, for {:.1?} more unless it is extended",
                lease.name, lease.holder, lease.token, lease.remaining
            ),
            Self::HeldHere(name) => write!(f, "lock \"{name}\": this process holds it or waits for it"),
            Self::OthersWait(name) => write!(f, "lock \"{name}\": others wait for it in the queue"),
            Self::TimedOut {
                name,
                waited,
                held_by: Some(lease),
            } => write!(
                f,
                "lock \"{name}\": not free within {waited:.1?}: held by {}, token {}; wait longer",
                lease.holder, lease.token
            ),
            Self::TimedOut {
                name,
                waited,
                held_by: None,
            } => write!(
                f,
                "lock \"{name}\": not free within {waited:.1?}: others in this process, or in its queue, come first; wait longer"
            ),
            Self::WaitsForItself(name) => write!(
                f,
                "lock \"{name}\": its owner has it already and would wait for itself; release it first, or build \
                 the manager with Reentrancy::Counted"
            ),
            Self::TooMany { name, locks_max } => write!(
                f,
                "lock \"{name}\": the manager holds and waits for {locks_max} locks, which is its bound; release \
                 some, or raise locks_max"
            ),
            Self::OtherApplication { name, holder } => write!(
                f,
                "lock \"{name}\": another application uses this name ({holder}); choose another name or another \
                 collection"
            ),
            Self::Store(error) => error.fmt(f),
            Self::Stopped(name) => {
                write!(
                    f,
                    "lock \"{name}\": the lock manager has stopped; build a new one"
                )
            }
        }
    }
}

impl std::error::Error for LockError {}
