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

impl Authority {
    /// The authority of a term at `now`: the one place where this is decided.
    ///
    /// `until` is when the belief ends, `doubt_from` when doubt begins, whatever its reason.
    #[must_use]
    pub fn of_term(token: FencingToken, doubt_from: Moment, until: Moment, now: Moment) -> Self {
        if now >= until {
            Self::None
        } else if now >= doubt_from {
            Self::Doubtful {
                token,
                since: doubt_from,
                until,
            }
        } else {
            Self::Held { token, until }
        }
    }
}
