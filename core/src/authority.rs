use crate::{FencingToken, Moment};

/// What a process may believe **now** about one lease.
///
/// Advice, not a guarantee: a process can be paused between asking and acting. The guarantee is the fence of
/// the data path, which refuses the token of a past term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Authority {
    /// The process leads.
    Held {
        /// The token of its term.
        token: FencingToken,
        /// When this belief ends, unless a renewal extends it.
        until: Moment,
    },
    /// The process still leads, but begin no new work: the end is near without a confirmed renewal. One may
    /// still come, and end the doubt: wait, and ask again.
    Doubtful {
        /// The token of its term.
        token: FencingToken,
        /// Since when.
        since: Moment,
        /// When this belief ends, unless a renewal extends it.
        until: Moment,
    },
    /// The process still leads, but somebody wants its term to end: begin no new work, end what has begun,
    /// and step down. Renewals go on meanwhile and do not undo it: a holder that waits for it to pass leads
    /// for ever without working.
    Ending {
        /// The token of its term.
        token: FencingToken,
        /// Since when.
        since: Moment,
        /// When this belief ends, unless a renewal extends it.
        until: Moment,
    },
    /// The process does not lead.
    None,
}

impl Authority {
    /// The token of the term, as long as the process leads: also where it is to begin no new work.
    #[must_use]
    pub const fn token(self) -> Option<FencingToken> {
        match self {
            Self::Held { token, .. } | Self::Doubtful { token, .. } | Self::Ending { token, .. } => {
                Some(token)
            }
            Self::None => None,
        }
    }

    /// When the belief ends, unless a renewal extends it; `None` where it has.
    #[must_use]
    pub const fn until(self) -> Option<Moment> {
        match self {
            Self::Held { until, .. } | Self::Doubtful { until, .. } | Self::Ending { until, .. } => {
                Some(until)
            }
            Self::None => None,
        }
    }
}

/// What is believed of a term until something changes: enough to answer for every moment.
///
/// A driver hands it to other threads, so that they can ask without the engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Belief {
    /// The term's token.
    pub token: FencingToken,
    /// When doubt begins, or has begun, whatever its reason.
    pub doubt_from: Moment,
    /// Since when it is being ended, if it is.
    pub ending_from: Option<Moment>,
    /// When authority ends, unless a renewal extends it.
    pub until: Moment,
}

impl Belief {
    /// The authority at `now`: the one place where this is decided.
    #[must_use]
    pub fn at(&self, now: Moment) -> Authority {
        let Self {
            token,
            doubt_from,
            ending_from,
            until,
        } = *self;
        if now >= until {
            Authority::None
        } else if let Some(since) = ending_from.filter(|since| now >= *since) {
            Authority::Ending { token, since, until }
        } else if now >= doubt_from {
            Authority::Doubtful {
                token,
                since: doubt_from,
                until,
            }
        } else {
            Authority::Held { token, until }
        }
    }
}
