//! After a campaign that was ended with an attempt unresolved: find what the attempt left, and release it.

use super::campaign::ended;
use super::departure::not_ours;
use super::seat::{Left, Seat};
use super::{Actions, Departure, Engine, InFlight, RequestId};
use crate::{Acquired, Certainty, FencingToken, Lease, LeaseName, Moment, Occupancy, Released, StoreError};

impl Engine {
    pub(super) fn looked(
        &mut self,
        now: Moment,
        request: RequestId,
        sent: &InFlight,
        result: Result<Option<Lease>, StoreError>,
        actions: &mut Actions,
    ) {
        let Some(name) = sent.names.first() else { return };
        let retry_every = self.timing.retry_every;
        let incarnation = self.candidate.incarnation;
        let Some(Seat::Search(search)) = self.seats.get_mut(name) else {
            return;
        };
        if search.request != Some(request) {
            return;
        }
        search.request = None;
        let attempt = search.attempt;
        let found = match result {
            Ok(lease) => {
                let ours =
                    |lease: &&Lease| lease.holder.incarnation == incarnation && lease.attempt == attempt;
                let held = lease
                    .as_ref()
                    .filter(|lease| lease.occupancy() == Occupancy::Held);
                match held.filter(ours) {
                    Some(lease) => Found::Taken(lease.token),
                    None => Found::Another(lease),
                }
            }
            Err(error) if now.after(retry_every) < search.give_up_at && !error.fault.ends_a_release() => {
                search.next_at = now.after(retry_every);
                return;
            }
            // What was left has expired by itself, or nobody can ever find out.
            Err(error) => Found::Unknown(error),
        };
        self.found(now, name, found, actions);
    }

    /// Takes in the answer to the try that was under way when its campaign ended.
    pub(super) fn answered_after_withdrawal(
        &mut self,
        now: Moment,
        name: &LeaseName,
        result: Result<Acquired, StoreError>,
        actions: &mut Actions,
    ) {
        let expired_at = now.after(self.timing.surely_expired(self.timing.ttl));
        let Some(Seat::Search(search)) = self.seats.get_mut(name) else {
            return;
        };
        search.request = None;
        // It may have been applied just now.
        search.give_up_at = expired_at;
        let found = match result {
            Ok(Acquired::Granted(grant)) => Found::Taken(grant.token),
            Ok(Acquired::Held(lease)) => Found::Another(Some(lease)),
            Ok(Acquired::Superseded) => {
                let Some(left) = &mut search.heir_of else {
                    return self.found(now, name, Found::Another(None), actions);
                };
                // It may be there yet: the record says so.
                left.is_doubtful = true;
                search.next_at = now;
                return;
            }
            Err(error) if error.certainty == Certainty::NotApplied && !search.unresolved => Found::Untouched,
            Err(error) => {
                search.unresolved |= error.certainty == Certainty::Unknown;
                search.next_at = now;
                return;
            }
        };
        self.found(now, name, found, actions);
    }

    /// Ends the search.
    fn found(&mut self, now: Moment, name: &LeaseName, found: Found, actions: &mut Actions) {
        let Some(Seat::Search(search)) = self.seats.get_mut(name) else {
            return;
        };
        let (attempt, give_up_at, unresolved) = (search.attempt, search.give_up_at, search.unresolved);
        let (heir_of, error, then) = (search.heir_of.take(), search.error.take(), search.then.take());
        let mut orphan = match found {
            Found::Taken(token) => Some(Left {
                token,
                attempt,
                give_up_at,
                // It was seen to be there.
                is_doubtful: false,
            }),
            Found::Another(_) | Found::Untouched | Found::Unknown(_) => None,
        };
        if let Some(left) = heir_of {
            let departure = match found {
                Found::Taken(_) => Some(Departure::Answered(Released::Vacated)),
                // The attempt never took the lease from it: it is still to be released.
                Found::Untouched => None,
                Found::Another(Some(lease)) if self.is_of(left, &lease) => None,
                Found::Another(lease) => Some(not_ours(
                    name,
                    unresolved || left.is_doubtful,
                    lease.map(Box::new),
                )),
                Found::Unknown(error) => Some(Departure::Unconfirmed {
                    error,
                    remaining: left.give_up_at.since(now),
                }),
            };
            match departure {
                Some(departure) => actions.events.push(left.departed(name, departure)),
                None => {
                    orphan = Some(Left {
                        is_doubtful: unresolved || left.is_doubtful,
                        ..left
                    });
                }
            }
        }
        self.seats.remove(name);
        actions.events.push(ended(name, error));
        if let Some(left) = orphan {
            self.leave(now, name, left);
            if let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) {
                leaving.then = then;
            }
        } else if let Some(wanted) = then {
            self.begin_campaign(now, name.clone(), wanted);
        }
    }
}

/// What became of the attempt of a campaign that has ended.
enum Found {
    /// It took the lease, with this token.
    Taken(FencingToken),
    /// It holds nothing: the lease is another's, or nobody's.
    Another(Option<Lease>),
    /// It changed nothing.
    Untouched,
    /// Nobody could tell, for as long as it matters.
    Unknown(StoreError),
}
