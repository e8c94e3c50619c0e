//! Giving a lease back: only after the work has ended, conditional on the exact term, until it is certain.

use super::seat::{Leaving, Left, Seat};
use super::{Actions, Cause, Departure, Engine, Event, RequestId};
use crate::{Certainty, Fault, FencingToken, Lease, LeaseName, Moment, Released, StoreError};
use std::time::Duration;

impl Engine {
    pub(super) fn work_ended(
        &mut self,
        now: Moment,
        name: &LeaseName,
        token: FencingToken,
        actions: &mut Actions,
    ) {
        let Some(term) = self.term_mut(name, token) else {
            return;
        };
        let (attempt, sent_at, granted) = (term.attempt, term.sent_at, term.granted);
        self.end(name, Cause::GivenBack, actions);
        // A renewal may be under way: it can extend the lease in the store once more, from now at the latest.
        let give_up_at = sent_at.max(now).after(self.timing.surely_expired(granted));
        let left = Left {
            token,
            attempt,
            give_up_at,
            is_doubtful: false,
        };
        self.leave(now, name, left);
    }

    /// Starts the release of a term in which this process no longer believes.
    pub(super) fn leave(&mut self, now: Moment, name: &LeaseName, left: Left) {
        let leaving = Leaving {
            token: left.token,
            attempt: left.attempt,
            request: None,
            next_at: now,
            give_up_at: left.give_up_at,
            has_failed: false,
            unresolved: left.is_doubtful,
            then: None,
        };
        self.seats.insert(name.clone(), Seat::Departure(leaving));
    }

    pub(super) fn released(
        &mut self,
        now: Moment,
        request: RequestId,
        name: &LeaseName,
        result: Result<Released, StoreError>,
        actions: &mut Actions,
    ) {
        let retry_every = self.timing.retry_every;
        let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) else {
            return;
        };
        if leaving.request != Some(request) {
            return;
        }
        leaving.request = None;
        let (token, unresolved) = (leaving.token, leaving.unresolved);
        let remaining = leaving.give_up_at.since(now);
        if let Err(error) = &result {
            // Each one, though the next may succeed: whoever cannot wait until the last has the reason.
            actions.events.push(Event::ReleaseFailed {
                name: name.clone(),
                token,
                error: error.clone(),
                remaining,
            });
        }
        let departure = match result {
            Ok(Released::Vacated) => Departure::Answered(Released::Vacated),
            Ok(Released::NotYours(lease)) => not_ours(name, unresolved, lease),
            Err(error) if now.after(retry_every) < leaving.give_up_at && !error.fault.ends_a_release() => {
                leaving.has_failed = true;
                leaving.unresolved |= error.certainty == Certainty::Unknown;
                leaving.next_at = now.after(retry_every);
                return;
            }
            Err(error) => Departure::Unconfirmed { error, remaining },
        };
        self.depart(now, name, departure, actions);
    }

    /// The release is done: nothing is left, and whoever waits for the lease campaigns for it.
    pub(super) fn depart(
        &mut self,
        now: Moment,
        name: &LeaseName,
        departure: Departure,
        actions: &mut Actions,
    ) {
        let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) else {
            return;
        };
        let (token, then) = (leaving.token, leaving.then.take());
        self.seats.remove(name);
        actions.events.push(Event::Departed {
            name: name.clone(),
            token,
            departure,
        });
        if let Some(wanted) = then {
            self.begin_campaign(now, name.clone(), wanted);
        }
    }
}

/// What it says of a term that the lease is another's, or nobody's. If `unresolved`, an earlier request may
/// have given it back, and most likely did; then somebody has taken it since.
pub(super) fn not_ours(name: &LeaseName, unresolved: bool, lease: Option<Box<Lease>>) -> Departure {
    if !unresolved {
        return Departure::Answered(Released::NotYours(lease));
    }
    let message = format!(
        "lease \"{name}\": the answer to a request that was to give it back was lost or overtaken, and by the next one it was no longer \
         this term's"
    );
    Departure::Unconfirmed {
        error: StoreError::unknown(Fault::TimedOut, message),
        remaining: Duration::ZERO,
    }
}
