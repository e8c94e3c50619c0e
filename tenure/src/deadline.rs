//! The deadline of a term, for every thread to read and none to wait for.

use crate::sync::{AtomicU64, Ordering};
use tenure_core::{Authority, Belief, FencingToken, Moment};

/// Until when a term is believed in.
///
/// - It ends **once**: whoever first sees the deadline pass ends it for all, so that no renewal that is
///   published a moment later brings back what somebody has seen gone.
/// - The numbers are read one by one. Any mixture of an older and a newer state is on the safe side or equal
///   to a reading an instant earlier: both moments only rise with renewals.
#[derive(Debug)]
pub(crate) struct Deadline {
    token: FencingToken,
    /// Nanoseconds; with the bit [`OVER`] once the term is over.
    until: AtomicU64,
    doubt_from: AtomicU64,
    /// Since when it is being ended; [`NEVER`] if it is not. No renewal takes that back.
    ending_from: AtomicU64,
}

/// No moment has this bit: it is 292 years after boot.
const OVER: u64 = 1 << 63;
const NEVER: u64 = u64::MAX;

impl Deadline {
    pub(crate) fn new(belief: Belief) -> Self {
        Self {
            token: belief.token,
            until: AtomicU64::new(belief.until.as_nanos()),
            doubt_from: AtomicU64::new(belief.doubt_from.as_nanos()),
            ending_from: AtomicU64::new(belief.ending_from.map_or(NEVER, Moment::as_nanos)),
        }
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.token
    }

    /// When it ends, or has ended if nobody ended it before.
    pub(crate) fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::SeqCst) & !OVER)
    }

    /// What is believed; until the beginning of time, once the term is over.
    pub(crate) fn belief(&self) -> Belief {
        let doubt_from = self.doubt_from.load(Ordering::SeqCst);
        let ending_from = self.ending_from.load(Ordering::SeqCst);
        let until = self.until.load(Ordering::SeqCst);
        Belief {
            token: self.token,
            doubt_from: Moment::from_nanos(doubt_from.min(ending_from)),
            ending_from: (ending_from != NEVER).then(|| Moment::from_nanos(ending_from)),
            until: Moment::from_nanos(if is_over(until) { 0 } else { until }),
        }
    }

    /// What may be believed at the moment that `clock` shows.
    ///
    /// Goes round again only when a renewal was published in between: it waits for nobody.
    pub(crate) fn authority(&self, clock: impl Fn() -> Moment) -> Authority {
        loop {
            let belief = self.belief();
            let authority = belief.at(clock());
            let seen = belief.until.as_nanos();
            let ends_now = authority == Authority::None && belief.until > Moment::ZERO;
            if !ends_now
                || self
                    .until
                    .compare_exchange(seen, seen | OVER, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
            {
                return authority;
            }
        }
    }

    /// Takes over what the engine believes; not if the term is over already.
    #[must_use]
    pub(crate) fn extend(&self, belief: &Belief) -> Extension {
        if let Some(since) = belief.ending_from {
            self.begin_to_end(since);
        }
        self.doubt_from
            .store(belief.doubt_from.as_nanos(), Ordering::SeqCst);
        let until = belief.until.as_nanos();
        let unless_over = |current| (!is_over(current)).then_some(until);
        match self
            .until
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, unless_over)
        {
            Ok(_) => Extension::Published,
            Err(_) => Extension::TooLate,
        }
    }

    /// Ending from `since` on, whatever renewals come.
    pub(crate) fn begin_to_end(&self, since: Moment) {
        self.ending_from.fetch_min(since.as_nanos(), Ordering::SeqCst);
    }

    /// Whether somebody has [ended](Self::end) it, rather than only seen it pass.
    pub(crate) fn has_been_ended(&self) -> bool {
        self.until.load(Ordering::SeqCst) == OVER
    }

    /// Over, before anything else is done about it.
    pub(crate) fn end(&self) {
        self.until.swap(OVER, Ordering::SeqCst);
    }
}

fn is_over(until: u64) -> bool {
    until & OVER != 0
}

/// What became of a renewal that was to be published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extension {
    /// Everybody sees it.
    Published,
    /// The term was over: somebody has seen its deadline pass, or its handle has ended it.
    TooLate,
}
