use super::{Answer, StoreError};
use crate::{FencingToken, LeaseName};

/// What to watch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// One lease.
    Name(LeaseName),
    /// Every lease whose name begins with this text; empty for all.
    Prefix(String),
}

impl Scope {
    /// Whether `name` is watched.
    #[must_use]
    pub fn covers(&self, name: &LeaseName) -> bool {
        match self {
            Self::Name(watched) => watched == name,
            Self::Prefix(prefix) => name.as_str().starts_with(prefix.as_str()),
        }
    }
}

/// What whoever watches waits for. A store for which every report costs something keeps the others to itself;
/// one that cannot tell them apart, or to which it is all one, reports more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Interest {
    /// Every change.
    Everything,
    /// That a lease may be taken: what leaves it held need not be reported. That is a term that began, and so
    /// also one that has ended where the next has begun before the store looked.
    Ends,
    /// That a term is over, whatever comes after it: that one was given back is reported, by itself or by the
    /// next term, also where that has begun before the store looked.
    EveryEnd,
}

/// What happened to a lease. Renewals are not reported: they would wake every standby for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// It was released, or its record was removed: it may be taken now.
    Vacated,
    /// A new term began.
    Taken,
    /// Its holder was asked to step down.
    Asked,
}

/// A hint from a store's watch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WatchEvent {
    /// A lease changed.
    Changed {
        /// Which.
        name: LeaseName,
        /// What happened.
        change: Change,
        /// The token of the term that it happened to; `None` where the store does not know it any more.
        token: Option<FencingToken>,
    },
    /// Something may have been missed: look again.
    Gap,
}

/// A running watch. Dropping it ends it.
pub trait Watch: Send {
    /// The next event. May be dropped and called again without losing one.
    ///
    /// # Errors
    /// The watch is over; start a new one, then look again.
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>>;
}
