//! After a campaign that was ended with an attempt unresolved: find what the attempt left, and release it.

use super::campaign::ended;
use super::seat::Seat;
use super::{Actions, Engine, InFlight, RequestId};
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
        let orphan = match result {
            Ok(Some(lease)) => {
                let ours = lease.holder.incarnation == incarnation && lease.attempt == search.attempt;
                (ours && lease.occupancy() == Occupancy::Held).then_some(lease.token)
            }
            Ok(None) => None,
            Err(error)
                if now.after(retry_every) < search.give_up_at && !error.fault.is_misconfiguration() =>
            {
                search.next_at = now.after(retry_every);
                return;
            }
            // What was left has expired by itself, or nobody can ever find out.
            Err(_) => None,
        };
        let (attempt, give_up_at) = (search.attempt, search.give_up_at);
        let (error, then) = (search.error.take(), search.then.take());
        self.seats.remove(name);
        actions.events.push(ended(name, error));
        if let Some(token) = orphan {
            self.leave(now, name, token, attempt, give_up_at);
            if let Some(Seat::Departure(leaving)) = self.seats.get_mut(name) {
                leaving.then = then;
            }
        } else if let Some(wanted) = then {
            self.begin_campaign(now, name.clone(), wanted);
        }
    }
}
