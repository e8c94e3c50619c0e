use std::time::Duration;
use tenure_core::{Attempt, Departure, FencingToken, Grant, Lease, Moment, Released, RequestId};

/// What the checker knows of one lease name, from outside.
#[derive(Clone, Debug, Default)]
pub(super) enum Seat {
    #[default]
    Idle,
    Campaign(Campaign),
    Term(Term),
    Departure(Leaving),
    Search(Search),
}

/// What a campaign was commanded with; kept by a seat that is being left, for the one after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    pub(super) progress_within: Option<Duration>,
    pub(super) max_hold: Option<Duration>,
}

impl Wanted {
    /// When a term that begins at `now` has lasted for as long as it may.
    pub(super) fn over_at(self, now: Moment) -> Option<Moment> {
        let max = self.max_hold?;
        Some(now.after(max.max(Duration::from_nanos(1))))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Campaign {
    pub(super) wanted: Wanted,
    /// `None`: the next request must bring a new one.
    pub(super) attempt: Option<Attempt>,
    pub(super) open: Option<RequestId>,
    /// A request of this attempt may have been applied.
    pub(super) unresolved: bool,
    /// The term that was handed on to it, and that nobody has released.
    pub(super) heir_of: Option<(FencingToken, Attempt)>,
    /// An attempt to take that was overtaken.
    pub(super) is_doubtful: bool,
}

impl Campaign {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            attempt: None,
            open: None,
            unresolved: false,
            heir_of: None,
            is_doubtful: false,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) wanted: Wanted,
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) until: Moment,
    /// When it has lasted for as long as it may.
    pub(super) over_at: Option<Moment>,
    pub(super) open: Option<RequestId>,
    /// It was asked to end, so no new work may begin.
    pub(super) ending: bool,
}

impl Term {
    /// When belief ends that may be trusted until `trusted`.
    pub(super) fn within_hold(&self, trusted: Moment) -> Moment {
        self.over_at.map_or(trusted, |over_at| trusted.min(over_at))
    }

    /// Whether no renewal can extend it.
    pub(super) fn is_held_to_the_last(&self) -> bool {
        self.over_at.is_some_and(|over_at| over_at <= self.until)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) open: Option<RequestId>,
    /// An earlier request may have given it back.
    pub(super) unresolved: bool,
    pub(super) then: Option<Wanted>,
}

#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) attempt: Attempt,
    pub(super) misconfigured: bool,
    /// A look, or the try that was under way when the campaign ended.
    pub(super) open: Option<RequestId>,
    /// A request of this attempt that was answered may have been applied.
    pub(super) unresolved: bool,
    pub(super) then: Option<Wanted>,
    pub(super) heir_of: Option<(FencingToken, Attempt)>,
    pub(super) is_doubtful: bool,
}

/// An event that this step's input makes due, or at least allows.
#[derive(Clone, Debug)]
pub(super) enum Due {
    Begin {
        grant: Grant,
        until: Moment,
        over_at: Option<Moment>,
        attempt: Attempt,
    },
    /// What the answer lets the term be trusted until.
    Renew {
        trusted: Moment,
    },
    /// The term is asked to step down.
    Ask,
    End(Ending),
    Depart(Told),
    /// What became of the term that was handed on.
    Inherit {
        token: FencingToken,
        told: Told,
    },
    /// A campaign's end is told; the term that is left to be released, if there is one.
    Settle {
        misconfigured: bool,
        orphan: Option<(FencingToken, Attempt)>,
    },
    /// A search may be given up, if what it looks for has surely expired.
    GiveUp {
        misconfigured: bool,
    },
    Standby {
        lease: Lease,
    },
}

/// What is told of a term that was given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    Vacated,
    NotYours,
    /// It is another's now, and an earlier request may have given it back.
    Unresolved,
    /// The store has not said anything, so it may be asked again.
    GivenUp,
}

impl Told {
    pub(super) fn not_ours(unresolved: bool) -> Self {
        match unresolved {
            true => Self::Unresolved,
            false => Self::NotYours,
        }
    }

    pub(super) fn is(self, departure: &Departure) -> bool {
        match departure {
            Departure::Answered(Released::Vacated) => self == Self::Vacated,
            Departure::Answered(Released::NotYours(_)) => self == Self::NotYours,
            Departure::Unconfirmed { .. } => matches!(self, Self::Unresolved | Self::GivenUp),
        }
    }
}

/// Why a term must end in this step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Overdue,
    GivenBack,
    HandedOn(Wanted),
    Succeeded,
    Lost,
}

impl Due {
    /// Whether the step is wrong without it.
    pub(super) fn is_required(&self) -> bool {
        match self {
            Self::Begin { .. } | Self::Renew { .. } | Self::Ask | Self::End(_) => true,
            Self::Depart(told) | Self::Inherit { told, .. } => *told != Told::GivenUp,
            Self::Settle { .. } => true,
            Self::GiveUp { .. } | Self::Standby { .. } => false,
        }
    }
}
