//! What is due of a seat, and when: the one place that says so.

use super::WakeReason;
use super::seat::{Seat, Term};
use crate::{Attempt, Moment};
use std::time::Duration;

/// What may be due of a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Its term ends. Only of a term that is doubtful by then: before, its doubt is what comes next.
    Deadline,
    /// Its term becomes doubtful, or ends if that is due too.
    Doubt,
    /// Its term is stuck if it is to be renewed.
    Stuck,
    /// Its term is to be renewed.
    Renewal,
    /// Its campaign makes an attempt.
    Attempt,
    /// Its term is released.
    Release,
    /// What an attempt left is looked for.
    Look,
}

impl Due {
    pub(super) const ALL: [Self; 7] = [
        Self::Deadline,
        Self::Doubt,
        Self::Stuck,
        Self::Renewal,
        Self::Attempt,
        Self::Release,
        Self::Look,
    ];

    /// Why an engine wakes for it; `None` if it waits for something else to wake the engine.
    pub(super) fn wakes(self) -> Option<WakeReason> {
        match self {
            Self::Deadline => Some(WakeReason::Deadline),
            Self::Doubt => Some(WakeReason::Doubt),
            // It is only asked when a renewal is due, and that wakes.
            Self::Stuck => None,
            Self::Renewal => Some(WakeReason::Renewal),
            Self::Attempt => Some(WakeReason::Attempt),
            Self::Release | Self::Look => Some(WakeReason::Departure),
        }
    }
}

/// When each [`Due`] of one seat is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dues {
    attempt: Attempt,
    at: [Option<Moment>; Due::ALL.len()],
}

impl Dues {
    pub(super) fn of(seat: &Seat, grace: Duration) -> Self {
        let mut dues = Self {
            attempt: seat.attempt(),
            at: [None; Due::ALL.len()],
        };
        match seat {
            Seat::Campaign(campaign) => {
                dues.set(
                    Due::Attempt,
                    campaign.request.is_none().then_some(campaign.next_at),
                );
            }
            Seat::Term(term) => dues.of_term(term, grace),
            Seat::Departure(leaving) => {
                dues.set(Due::Release, leaving.request.is_none().then_some(leaving.next_at));
            }
            Seat::Search(search) => {
                dues.set(Due::Look, search.request.is_none().then_some(search.next_at));
            }
        }
        dues
    }

    fn of_term(&mut self, term: &Term, grace: Duration) {
        let doubt = term.doubt_from(grace);
        if term.doubted || doubt == term.until {
            self.set(Due::Deadline, Some(term.until));
        } else {
            self.set(Due::Doubt, Some(doubt));
        }
        if term.is_let_go() {
            return;
        }
        self.set(Due::Renewal, term.request.is_none().then_some(term.renew_at));
        // Also while a renewal is under way: the one after it is then known to be refused.
        let stuck = term
            .gate
            .map(|gate| gate.last_progress.after(gate.within).max(term.renew_at));
        self.set(Due::Stuck, stuck);
    }

    fn set(&mut self, due: Due, at: Option<Moment>) {
        self.at[due as usize] = at;
    }

    /// Where this stands in the agenda, if it is due ever.
    pub(super) fn entry(&self, due: Due) -> Option<(Moment, Attempt)> {
        self.at[due as usize].map(|at| (at, self.attempt))
    }
}
