//! Handing a lease on within a process: the next attempt takes it from the term before, which is not
//! released.
//!
//! A store grants a later attempt of the incarnation that holds the lease, with a greater token. So one
//! request does what a release and an acquisition would do, and nobody else's turn is in between.

use super::departure::not_ours;
use super::seat::{Campaign, Left, Seat, Wanted};
use super::{Actions, Cause, Departure, Engine, Event};
use crate::{FencingToken, Grant, Lease, LeaseName, Moment, Occupancy, Released};

impl Engine {
    pub(super) fn hand_on(
        &mut self,
        now: Moment,
        name: &LeaseName,
        token: FencingToken,
        wanted: Wanted,
        actions: &mut Actions,
    ) {
        let Some(term) = self.term_mut(name, token) else {
            return;
        };
        let (attempt, sent_at, granted) = (term.attempt, term.sent_at, term.granted);
        self.end(name, Cause::GivenBack, actions);
        let left = Left {
            token,
            attempt,
            // As for a release: a renewal may be under way.
            give_up_at: sent_at.max(now).after(self.timing.surely_expired(granted)),
            is_doubtful: false,
        };
        self.begin_campaign(now, name.clone(), wanted);
        if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) {
            campaign.heir_of = Some(left);
        }
    }

    /// Tells what became of the term that a campaign is the heir of, if it is one's.
    pub(super) fn inherit(&mut self, name: &LeaseName, departure: Departure, actions: &mut Actions) {
        let Some(Seat::Campaign(campaign)) = self.seats.get_mut(name) else {
            return;
        };
        if let Some(left) = campaign.heir_of.take() {
            actions.events.push(left.departed(name, departure));
        }
    }

    /// Whether a record is still of the term that was left.
    pub(super) fn is_of(&self, left: Left, lease: &Lease) -> bool {
        lease.holder.incarnation == self.candidate.incarnation
            && (lease.token, lease.attempt) == (left.token, left.attempt)
            && lease.occupancy() == Occupancy::Held
    }
}

impl Campaign {
    /// What a grant says of the term that this campaign is the heir of.
    pub(super) fn found_by(&self, name: &LeaseName, grant: &Grant) -> Departure {
        let is_later = |token| self.heir_of.is_some_and(|left| token > left.token);
        match &grant.predecessor {
            // Another was in between. Not so surely after a try that nobody heard of: that one may have been
            // the heir.
            Some(before) if is_later(before.token) && !grant.again => not_ours(name, self.is_unsure(), None),
            Some(_) | None => Departure::Answered(Released::Vacated),
        }
    }

    /// Whether an attempt of its own may have been in between.
    pub(super) fn is_unsure(&self) -> bool {
        self.unresolved || self.heir_of.is_some_and(|left| left.is_doubtful)
    }
}

impl Left {
    pub(super) fn departed(self, name: &LeaseName, departure: Departure) -> Event {
        Event::Departed {
            name: name.clone(),
            token: self.token,
            departure,
        }
    }
}
