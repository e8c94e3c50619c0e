//! After a campaign that was ended with an attempt unresolved: find what the attempt left, and release it.

use super::campaign::ended;
use super::seat::{Left, Seat};
use super::{Actions, Departure, Engine, InFlight, RequestId};
use crate::{Lease, Moment, Occupancy, StoreError};

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
        let (mut seen, mut unseen) = (None, None);
        let orphan = match result {
            Ok(Some(lease)) => {
                let ours = lease.holder.incarnation == incarnation && lease.attempt == search.attempt;
                let orphan = (ours && lease.occupancy() == Occupancy::Held).then_some(lease.token);
                seen = Some(lease);
                orphan
            }
            Ok(None) => None,
            Err(error)
                if now.after(retry_every) < search.give_up_at && !error.fault.is_misconfiguration() =>
            {
                search.next_at = now.after(retry_every);
                return;
            }
            // What was left has expired by itself, or nobody can ever find out.
            Err(error) => {
                unseen = Some(error);
                None
            }
        };
        let (attempt, give_up_at) = (search.attempt, search.give_up_at);
        let (error, then) = (search.error.take(), search.then.take());
        let mut orphan = orphan.map(|token| Left {
            token,
            attempt,
            give_up_at,
        });
        if let Some(left) = search.heir_of.take() {
            if seen.as_ref().is_some_and(|lease| self.is_of(left, lease)) {
                // The attempt never took the lease from it: it is still to be released.
                orphan = Some(left);
            } else {
                let departure = match unseen {
                    Some(error) => Departure::Unconfirmed(Some(error)),
                    None => Left::after_look(orphan.is_some(), seen),
                };
                actions.events.push(left.departed(name, departure));
            }
        }
        self.seats.remove(name);
        actions.events.push(ended(name, error));
        if let Some(left) = orphan {
            self.leave(now, name, left.token, left.attempt, left.give_up_at);
            if let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) {
                leaving.then = then;
            }
        } else if let Some(wanted) = then {
            self.begin_campaign(now, name.clone(), wanted);
        }
    }
}
