//! What a driver knows of one lease: who waits for it here, and who holds it.

use super::message::{NotWon, Queueing, Waiting, Won};
use super::permit::Permit;
use crate::held::HeldTerm;
use crate::sync::oneshot;
use crate::term::{Phase, SharedTerm};
use std::collections::VecDeque;
use std::sync::Arc;
use tenure_core::{Departure, FencingToken, Grant};

#[derive(Default)]
pub(super) struct Place {
    /// In the order in which they came; the engine campaigns for the first.
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) term: Option<Arc<SharedTerm>>,
    /// Kept until the term is over.
    permit: Option<Permit>,
    departing: Vec<(FencingToken, oneshot::Sender<Departure>)>,
    /// How often in a row a term was handed on here without a release.
    handed_on: u32,
}

/// How often in a row a lease is handed on within a process before it is released, so that other processes, which
/// only a release wakes, get to try: eight hand-overs of nine cost one request instead of two.
const HAND_ONS_MAX: u32 = 8;

/// Whether a term that was won was handed to anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// Somebody has it.
    Yes,
    /// Whoever campaigned was gone.
    No,
}

impl Place {
    /// Lets `waiting` wait, unless it is not to. Whether it is the first, so that the engine must campaign.
    #[must_use]
    pub(super) fn admit(&mut self, waiting: Waiting) -> bool {
        let is_first = self.waiting.is_empty() && self.term.is_none();
        if is_first || waiting.queueing == Queueing::Line {
            self.waiting.push_back(waiting);
        } else {
            let _ = waiting.won.send(Err(NotWon::Busy));
        }
        is_first
    }

    /// Forgets who waits no longer. Whether anybody is left.
    pub(super) fn forget_those_who_left(&mut self) -> bool {
        self.waiting.retain(|waiting| !waiting.won.is_closed());
        !self.waiting.is_empty()
    }

    /// Hands the term to the first who still waits.
    pub(super) fn hand_over(&mut self, grant: &Grant, term: &Arc<SharedTerm>) -> Seen {
        self.term = Some(term.clone());
        let mut unseen: Option<Won> = None;
        let mut seen = Seen::No;
        while let Some(waiting) = self.waiting.pop_front() {
            let won = unseen.take().unwrap_or_else(|| Won {
                held: HeldTerm::new(waiting.name, term.clone(), waiting.messages),
                grant: grant.clone(),
            });
            match waiting.won.send(Ok(won)) {
                Ok(()) => {
                    self.permit = waiting.permit;
                    seen = Seen::Yes;
                    break;
                }
                // It left a moment ago: nobody has seen the term, so the next may have it.
                Err(unread) => unseen = unread.ok(),
            }
        }
        if self.waiting.is_empty() {
            // A place may last as long as the term, and most have seen a single waiter.
            self.waiting = VecDeque::new();
        }
        seen
    }

    /// Whether the term goes over to the next who waits here, without being released in between; counts it.
    pub(super) fn hands_on(&mut self, token: FencingToken) -> bool {
        // Somebody who asked for its end is not to find it taken again from within.
        let goes_over = |term: &Arc<SharedTerm>| term.token() == token && term.phase() == Phase::Running;
        let hands_on = self.handed_on < HAND_ONS_MAX
            && self.term.as_ref().is_some_and(goes_over)
            && self.forget_those_who_left();
        self.handed_on = if hands_on { self.handed_on + 1 } else { 0 };
        hands_on
    }

    /// Tells the first one, if it came for one look.
    pub(super) fn end_look(&mut self, why: impl FnOnce() -> NotWon) {
        let came_to_look = |first: &Waiting| first.queueing == Queueing::OneLook;
        if self.waiting.front().is_some_and(came_to_look)
            && let Some(waiting) = self.waiting.pop_front()
        {
            let _ = waiting.won.send(Err(why()));
        }
    }

    /// Ends the waiting of all.
    pub(super) fn refuse_all(&mut self, why: impl Fn() -> NotWon) {
        for waiting in self.waiting.drain(..) {
            let _ = waiting.won.send(Err(why()));
        }
    }

    /// The term is over; whoever waits for its departure is told, unless that goes on.
    pub(super) fn forget_term(&mut self) -> Option<Arc<SharedTerm>> {
        self.permit = None;
        self.term.take()
    }

    pub(super) fn await_departure(&mut self, token: FencingToken, departed: oneshot::Sender<Departure>) {
        self.departing.push((token, departed));
    }

    pub(super) fn answer_departures(&mut self, token: FencingToken, departure: &Departure) {
        for (departing, answer) in std::mem::take(&mut self.departing) {
            if departing == token {
                let _ = answer.send(departure.clone());
            } else {
                self.departing.push((departing, answer));
            }
        }
    }

    /// Whether the engine must campaign for it.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty() && self.term.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.term.is_none() && self.departing.is_empty()
    }
}
