use super::RequestId;
use crate::{Attempt, FencingToken, Moment, Note, StoreError, Ttl};
use std::time::Duration;

/// One lease name that this process wants, holds or is leaving.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Seat {
    Campaign(Campaign),
    Term(Term),
    Departure(Leaving),
    /// The campaign was ended while an attempt was unresolved: find what it has left.
    Search(Search),
}

impl Seat {
    /// The attempt by which its lease is wanted or was taken: no two seats have the same.
    pub(super) fn attempt(&self) -> Attempt {
        match self {
            Self::Campaign(campaign) => campaign.attempt,
            Self::Term(term) => term.attempt,
            Self::Departure(leaving) => leaving.attempt,
            Self::Search(search) => search.attempt,
        }
    }
}

/// What a campaign was begun with, kept for one that must wait for a departure.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wanted {
    pub(super) note: Note,
    pub(super) progress_within: Option<Duration>,
    pub(super) max_hold: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Campaign {
    pub(super) wanted: Wanted,
    pub(super) attempt: Attempt,
    /// The request that is under way.
    pub(super) request: Option<RequestId>,
    /// When the next one is due, if none is under way.
    pub(super) next_at: Moment,
    /// Failures in a row, for the back-off.
    pub(super) failures: u32,
    /// A request of this attempt may have been applied without our learning of it.
    pub(super) unresolved: bool,
    /// The term of others that was reported last.
    pub(super) reported: Option<FencingToken>,
    /// A hint that arrived while a request was under way, and that its answer may not know of yet.
    pub(super) hint: Option<Hint>,
    /// The term of this process from which the attempt takes the lease.
    pub(super) heir_of: Option<Left>,
}

/// A term whose work has ended: it is to be released, or a later attempt is to take the lease from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Left {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    /// By then the lease has surely expired by itself.
    pub(super) give_up_at: Moment,
    /// An attempt of this process may have taken the lease from it: who has it by now need not be another.
    pub(super) is_doubtful: bool,
}

/// What a watch said while a request was under way. The greater one makes the engine look wherever the
/// smaller one does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Hint {
    /// The term with this token was vacated.
    Vacated(FencingToken),
    /// Something, nobody knows what.
    Anything,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Term {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    /// The ttl granted last.
    pub(super) granted: Ttl,
    /// When the request was sent that granted it.
    pub(super) sent_at: Moment,
    /// When authority ends.
    pub(super) until: Moment,
    /// When the next renewal is due, if none is under way.
    pub(super) renew_at: Moment,
    pub(super) request: Option<RequestId>,
    /// Whether `Doubted` was reported since the last renewal.
    pub(super) doubted: bool,
    /// Since when the term is being ended.
    pub(super) ending_since: Option<Moment>,
    pub(super) gate: Option<Gate>,
    pub(super) hold: Option<Hold>,
    /// The last error since the last renewal.
    pub(super) last_error: Option<StoreError>,
}

/// The progress gate of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Gate {
    pub(super) within: Duration,
    pub(super) last_progress: Moment,
    /// Whether `Stuck` was reported since the last progress.
    pub(super) reported: bool,
}

/// The longest that a term may last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Hold {
    pub(super) max: Duration,
    /// When that is over.
    pub(super) until: Moment,
}

impl Hold {
    pub(super) fn from(now: Moment, max: Duration) -> Self {
        // Not zero: every term begins before it ends.
        let until = now.after(max.max(Duration::from_nanos(1)));
        Self { max, until }
    }

    /// When belief ends that may be trusted until `trusted`.
    pub(super) fn cap(hold: Option<Self>, trusted: Moment) -> Moment {
        hold.map_or(trusted, |hold| trusted.min(hold.until))
    }
}

impl Term {
    /// The longest hold, if it ends the term no later than the last renewal does: no renewal can extend it.
    pub(super) fn last_hold(&self) -> Option<Hold> {
        self.hold.filter(|hold| hold.until <= self.until)
    }

    /// Whether renewals have stopped for good, or until there is progress.
    pub(super) fn is_let_go(&self) -> bool {
        self.gate.is_some_and(|gate| gate.reported) || self.last_hold().is_some()
    }

    /// When doubt begins, or has begun.
    pub(super) fn doubt_from(&self, grace: Duration) -> Moment {
        let near_the_end = self.until.before(grace);
        self.ending_since
            .map_or(near_the_end, |since| since.min(near_the_end))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Leaving {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) request: Option<RequestId>,
    pub(super) next_at: Moment,
    /// By then the lease has surely expired by itself.
    pub(super) give_up_at: Moment,
    /// Whether a request for it has failed.
    pub(super) has_failed: bool,
    /// An earlier request may have given it back without our learning of it.
    pub(super) unresolved: bool,
    /// A campaign that begins after it.
    pub(super) then: Option<Wanted>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Search {
    pub(super) attempt: Attempt,
    /// A look, or the try that was under way when the campaign ended: before its answer a look may see too
    /// little.
    pub(super) request: Option<RequestId>,
    /// An earlier try may have been applied without our learning of it.
    pub(super) unresolved: bool,
    pub(super) next_at: Moment,
    pub(super) give_up_at: Moment,
    pub(super) then: Option<Wanted>,
    /// The term from which the attempt was to take the lease.
    pub(super) heir_of: Option<Left>,
    /// The misconfiguration that ended the campaign; `None` if a command did.
    pub(super) error: Option<StoreError>,
}
