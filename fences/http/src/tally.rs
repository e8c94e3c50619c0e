//! How many requests passed, and how many were refused for which reason.

use crate::refusal::Refusal;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests since the layer was made. For metrics: each number only rises.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Let in with a token.
    pub admitted: u64,
    /// Let pass without one, where none is needed.
    pub without_token: u64,
    /// 428.
    pub missing: u64,
    /// 400: an unclear header, or a name that cannot be a resource's.
    pub malformed: u64,
    /// 403: a token of another lease.
    pub foreign: u64,
    /// 403: a token that cannot exist yet.
    pub future: u64,
    /// 409; one that was admitted first and cut short is counted in both.
    pub stale: u64,
    /// 503: older requests did not end in time.
    pub older_inside: u64,
    /// 503: too many inside or waiting.
    pub crowded: u64,
    /// 503: the fence's store.
    pub unavailable: u64,
}

/// A number for each reason: as many as there are, whoever asks.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    admitted: AtomicU64,
    without_token: AtomicU64,
    missing: AtomicU64,
    malformed: AtomicU64,
    foreign: AtomicU64,
    future: AtomicU64,
    stale: AtomicU64,
    older_inside: AtomicU64,
    crowded: AtomicU64,
    unavailable: AtomicU64,
}

impl Counters {
    pub(crate) fn admitted(&self) {
        self.admitted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn without_token(&self) {
        self.without_token.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        let counter = match refusal {
            Refusal::Missing { .. } => &self.missing,
            Refusal::Malformed(_) | Refusal::NoResource(_) => &self.malformed,
            Refusal::Foreign { .. } => &self.foreign,
            Refusal::Future { .. } => &self.future,
            Refusal::Stale { .. } | Refusal::Superseded(_) => &self.stale,
            Refusal::OlderInside { .. } => &self.older_inside,
            Refusal::Crowded { .. } => &self.crowded,
            Refusal::Unavailable { .. } => &self.unavailable,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn tally(&self) -> Tally {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Tally {
            admitted: now(&self.admitted),
            without_token: now(&self.without_token),
            missing: now(&self.missing),
            malformed: now(&self.malformed),
            foreign: now(&self.foreign),
            future: now(&self.future),
            stale: now(&self.stale),
            older_inside: now(&self.older_inside),
            crowded: now(&self.crowded),
            unavailable: now(&self.unavailable),
        }
    }
}
