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
    /// The process still leads, but begin no new work: the end is near without a confirmed renewal, or the
    /// term is being ended.
    Doubtful {
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

/// What is believed of a term until something changes: enough to answer for every moment.
///
/// A driver hands it to other threads, so that they can ask without the engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Belief {
    /// The term's token.
    pub token: FencingToken,
    /// When doubt begins, or has begun, whatever its reason.
    pub doubt_from: Moment,
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
            until,
        } = *self;
        if now >= until {
            Authority::None
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
