use super::RequestId;
use crate::{
    Acquire, Candidate, FencingToken, Grant, Lease, LeaseName, Moment, Release, Released, Renew, StoreError,
};
use std::fmt;
use std::time::Duration;

/// What an engine wants done.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[must_use]
pub struct Actions {
    /// Requests to send now, each on its own: none waits for another.
    pub requests: Vec<Request>,
    /// What has happened, in order.
    pub events: Vec<Event>,
    /// When to step with [`Input::Tick`](super::Input::Tick) if nothing happens before; `None`: no need.
    pub wake: Option<Wake>,
}

/// A request to the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Its number, for the answer.
    pub id: RequestId,
    /// When the engine gives it up: never after the end of the term that it is to extend. The driver stops
    /// waiting then; an answer that still comes is dropped.
    pub give_up_at: Moment,
    /// What to ask.
    pub operation: Operation,
}

/// What to ask the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// [`LeaseStore::acquire`](crate::LeaseStore::acquire).
    Acquire(Acquire),
    /// [`LeaseStore::renew`](crate::LeaseStore::renew).
    Renew(Vec<Renew>),
    /// [`LeaseStore::release`](crate::LeaseStore::release).
    Release(Vec<Release>),
    /// [`LeaseStore::get`](crate::LeaseStore::get), to find what a lost attempt has left.
    Look(LeaseName),
}

/// When to wake, and why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wake {
    /// When.
    pub at: Moment,
    /// Why.
    pub why: WakeReason,
}

/// Why an engine wakes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WakeReason {
    /// A term ends unless it was renewed.
    Deadline,
    /// A term becomes doubtful unless it was renewed.
    Doubt,
    /// A renewal is due.
    Renewal,
    /// A standby may try again.
    Attempt,
    /// A release is tried again, or its outcome looked up.
    Departure,
    /// A request is given up.
    RequestTimeout,
}

/// Why a term ended.
///
/// It may grow with any version, as [`Event`] may: outside of Tenure, end a match with `_`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// The work ended, and the lease is given back.
    GivenBack,
    /// Another term of the lease was seen.
    Succeeded {
        /// The token of that term.
        token: FencingToken,
        /// Who holds it, if known.
        by: Option<Candidate>,
    },
    /// The record says that this term is over, though nobody has taken the lease: it expired in the store,
    /// was vacated by an operator, or the record is gone.
    Vanished,
    /// The deadline passed without a confirmed renewal. Holds the last error since the last renewal.
    Deadline(Option<StoreError>),
    /// The deadline passed because renewals were stopped: the work reported no progress for this long.
    NoProgress(Duration),
    /// The term had lasted for as long as its campaign allows, which is this long.
    MaxHold(Duration),
}

impl Cause {
    /// In a word, as metrics and logs have it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::GivenBack => "given_back",
            Self::Succeeded { .. } => "succeeded",
            Self::Vanished => "vanished",
            Self::Deadline(_) => "deadline",
            Self::NoProgress(_) => "no_progress",
            Self::MaxHold(_) => "max_hold",
        }
    }
}

/// In words, of a term that was named before.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GivenBack => f.write_str("it was released"),
            Self::Succeeded { token, by: Some(by) } => write!(f, "it passed to {by}, token {token}"),
            Self::Succeeded { token, by: None } => write!(f, "it passed to another, token {token}"),
            Self::Vanished => f.write_str("it expired or was broken in the store"),
            Self::Deadline(Some(error)) => {
                write!(f, "it could not be renewed before its deadline ({error})")
            }
            Self::Deadline(None) => f.write_str("its deadline passed without a renewal"),
            Self::NoProgress(idle_for) => {
                write!(f, "no progress for {idle_for:.0?}, so it was not renewed")
            }
            Self::MaxHold(max) => write!(f, "it was held for {max:?}, the longest allowed (max_hold)"),
        }
    }
}

/// What became of a release.
///
/// It may grow with any version, as [`Event`] may: outside of Tenure, end a match with `_`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Departure {
    /// The store answered, and it answered all that was asked of it before.
    Answered(Released),
    /// Nobody knows whether it was given back, or was over before. The store did not answer until the lease
    /// has surely expired; or it said what only a person can mend
    /// ([`Fault::ends_a_release`](crate::Fault::ends_a_release)), after which it is not asked again; or the
    /// answer to a request that was to give it back was lost, and by the next one the lease was another's.
    Unconfirmed {
        /// What the last request for it has failed for.
        error: StoreError,
        /// For how long the record may yet hold it, unless it was given back.
        remaining: Duration,
    },
}

/// What has happened in an engine.
///
/// It may grow with any version, and is not `#[non_exhaustive]` all the same: the driver, the logs, the
/// metrics and the traces are to have an answer to a new word before they compile. Outside of Tenure, end a
/// match with `_`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Somebody else holds the lease; reported once per term of theirs, and again after an attempt that
    /// failed.
    Standby {
        /// The lease as it was seen.
        lease: Lease,
        /// Whether its holder has this candidate's id, though it is another process.
        twin: bool,
    },
    /// An attempt failed; the campaign goes on.
    AttemptFailed {
        /// The lease.
        name: LeaseName,
        /// Why.
        error: StoreError,
        /// When the next one is due.
        retry_in: Duration,
    },
    /// The campaign ended because an operator must act first.
    CampaignEnded {
        /// The lease.
        name: LeaseName,
        /// Why.
        error: StoreError,
    },
    /// The campaign ended as commanded; nothing is held.
    Withdrawn {
        /// The lease.
        name: LeaseName,
    },
    /// A term began.
    Acquired {
        /// The lease.
        name: LeaseName,
        /// What the store granted.
        grant: Grant,
        /// When it ends, unless renewed.
        until: Moment,
        /// From sending to the answer.
        round_trip: Duration,
    },
    /// The term was extended.
    Renewed {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// When it ends, unless renewed.
        until: Moment,
        /// From sending to the answer.
        round_trip: Duration,
        /// What was left until the old deadline when the answer came.
        slack: Duration,
    },
    /// A renewal failed; the term goes on until its deadline, and so do the tries.
    RenewalFailed {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// Why.
        error: StoreError,
        /// What is left until the deadline.
        remaining: Duration,
    },
    /// The term became doubtful.
    Doubted {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// What is left until the deadline.
        remaining: Duration,
    },
    /// A renewal ended the doubt.
    Reassured {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
    },
    /// Renewals stopped, because the work reported no progress in time.
    Stuck {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// Since when there was no progress.
        idle_for: Duration,
    },
    /// Somebody asked the holder to step down; the term is ending from now.
    AskedToStepDown {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
    },
    /// The term ended: authority is none. Exactly once for each [`Event::Acquired`].
    Ended {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// Why.
        cause: Cause,
    },
    /// A release failed. It is sent again, unless [`Event::Departed`] follows.
    ReleaseFailed {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// Why.
        error: StoreError,
        /// For how long the record may yet hold the lease: then it has surely expired by itself.
        remaining: Duration,
    },
    /// The release is done.
    Departed {
        /// The lease.
        name: LeaseName,
        /// The term.
        token: FencingToken,
        /// What became of it.
        departure: Departure,
    },
}

impl Event {
    /// The lease that it is about.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        match self {
            Self::Standby { lease, .. } => &lease.name,
            Self::AttemptFailed { name, .. }
            | Self::CampaignEnded { name, .. }
            | Self::Withdrawn { name, .. }
            | Self::Acquired { name, .. }
            | Self::Renewed { name, .. }
            | Self::RenewalFailed { name, .. }
            | Self::Doubted { name, .. }
            | Self::Reassured { name, .. }
            | Self::Stuck { name, .. }
            | Self::AskedToStepDown { name, .. }
            | Self::Ended { name, .. }
            | Self::ReleaseFailed { name, .. }
            | Self::Departed { name, .. } => name,
        }
    }
}
