//! One heart: what is due is sent together, in as few requests as the store's batch limit allows.

use super::due::Due;
use super::seat::Seat;
use super::{Actions, Engine, Event, Kind, Operation, RequestId};
use crate::{Acquire, LeaseName, Moment, Renew};

/// A due renewal takes along every other one that is due within this part of the renewal interval, so that
/// many leases need few calls.
pub(super) const TAKE_ALONG: u32 = 8;

/// What room is left in the last request is filled with renewals that are due within this part of the
/// interval: it is sent anyway, and leases that were taken at different times come to beat together, as many
/// as fit into a request.
const FILL: u32 = 2;

/// Terms that are nearly over, and not all alike, go in one request if none has more times as long as the
/// first of them, which is all the time that the request has.
const CUTS_MAX: u32 = 2;

/// A renewal that is to be sent.
struct DueRenewal {
    renew: Renew,
    /// When its term ends.
    until: Moment,
    /// Whether the last try failed.
    has_failed: bool,
}

impl Engine {
    pub(super) fn send_due_requests(&mut self, now: Moment, actions: &mut Actions) {
        self.attempt_due_campaigns(now, actions);
        self.renew_due_terms(now, actions);
        self.release_due_departures(now, actions);
        self.look_for_due_searches(now, actions);
    }

    fn attempt_due_campaigns(&mut self, now: Moment, actions: &mut Actions) {
        let mut due = Vec::new();
        for name in self.seats.due(&[Due::Attempt], now) {
            if let Some(Seat::Campaign(campaign)) = self.seats.get(&name) {
                due.push(Acquire {
                    name,
                    candidate: self.candidate.clone(),
                    attempt: campaign.attempt,
                    ttl: self.timing.ttl,
                    note: campaign.wanted.note.clone(),
                });
            }
        }
        for acquire in due {
            let name = acquire.name.clone();
            let names = vec![name.clone()];
            let id = self.send(
                now,
                Kind::Acquire,
                names,
                None,
                Operation::Acquire(acquire),
                actions,
            );
            if let Some(Seat::Campaign(campaign)) = self.seats.get_mut(&name) {
                campaign.request = Some(id);
                campaign.hint = None;
            }
        }
    }

    fn renew_due_terms(&mut self, now: Moment, actions: &mut Actions) {
        self.stop_stuck_terms(now, actions);
        let places = self.in_flight.places_for_renewals();
        if places == 0 || self.seats.agenda().by(Due::Renewal, now).next().is_none() {
            return;
        }
        let room = places.saturating_mul(self.batch_max.get());
        let mut due = self.renewals_due(now, now.after(self.timing.renew_every / TAKE_ALONG), room);
        // Not beside one that has failed: whatever it failed of may befall all that are sent with it.
        if !due.iter().any(|due| due.has_failed) {
            let full = due.len().next_multiple_of(self.batch_max.get());
            let more = self.renewals_due(now, now.after(self.timing.renew_every / FILL), full);
            due.extend(more.into_iter().skip(due.len()).filter(|due| !due.has_failed));
        }
        for batch in self.requests_of(due, now, places) {
            let limit = batch.iter().map(|due| due.until).min();
            let renewals: Vec<Renew> = batch.iter().map(|due| due.renew.clone()).collect();
            let names: Vec<LeaseName> = renewals.iter().map(|renew| renew.name.clone()).collect();
            let id = self.send(
                now,
                Kind::Renew,
                names.clone(),
                limit,
                Operation::Renew(renewals),
                actions,
            );
            self.mark_sent(&names, id);
        }
    }

    /// What is due, in as many requests as there are places for it. Whoever is chosen is sent in the order of
    /// the names, so that a beat within the room has one order only.
    ///
    /// No request may outlast a term that it is to extend, and so one that is nearly over cuts that of its
    /// neighbours short: it goes apart from them where there is a place to spare, which is nobody's who is
    /// due for longer.
    fn requests_of(&self, mut due: Vec<DueRenewal>, now: Moment, places: usize) -> Vec<Vec<DueRenewal>> {
        let batch_max = self.batch_max.get();
        let mut spare = places.saturating_sub(due.len().div_ceil(batch_max));
        let timeout = now.after(self.timing.request_timeout);
        let mut ending = Vec::new();
        if spare > 0 && due.iter().any(|due| due.until < timeout) {
            (ending, due) = due.into_iter().partition(|due| due.until < timeout);
            ending.sort_unstable_by(|one, other| {
                (one.until, &one.renew.name).cmp(&(other.until, &other.renew.name))
            });
            spare -= 1;
        }
        due.sort_unstable_by(|one, other| one.renew.name.cmp(&other.renew.name));
        let mut requests: Vec<Vec<DueRenewal>> = Vec::new();
        for term in ending {
            let left = term.until.since(now);
            match requests.last_mut() {
                Some(last)
                    if last.len() < batch_max
                        && (spare == 0 || left <= last[0].until.since(now) * CUTS_MAX) =>
                {
                    last.push(term);
                }
                Some(last) => {
                    // A place of its own, but where the last request is full.
                    spare -= usize::from(last.len() < batch_max);
                    requests.push(vec![term]);
                }
                None => requests.push(vec![term]),
            }
        }
        let mut due = due.into_iter().peekable();
        while due.peek().is_some() {
            requests.push(due.by_ref().take(batch_max).collect());
        }
        requests
    }

    /// The renewals that are due by `soon`, the longest due first, `limit` at most.
    fn renewals_due(&mut self, now: Moment, soon: Moment, limit: usize) -> Vec<DueRenewal> {
        let (incarnation, ttl) = (self.candidate.incarnation, self.timing.ttl);
        self.seats.longest_due(Due::Renewal, soon, limit, |name, seat| {
            let Seat::Term(term) = seat else { return None };
            // Work without progress is not taken along: the beats of neighbours would keep its term for ever.
            let idle = term
                .gate
                .is_some_and(|gate| now.since(gate.last_progress) >= gate.within);
            let renew = Renew {
                name: name.clone(),
                incarnation,
                token: term.token,
                attempt: term.attempt,
                ttl,
            };
            (!idle || term.renew_at <= now).then_some(DueRenewal {
                renew,
                until: term.until,
                has_failed: term.last_error.is_some(),
            })
        })
    }

    /// A worker that reports no progress is not renewed, so that it does not lead for ever.
    fn stop_stuck_terms(&mut self, now: Moment, actions: &mut Actions) {
        for name in self.seats.due(&[Due::Stuck], now) {
            let Some(Seat::Term(term)) = self.seats.get_mut(&name) else {
                continue;
            };
            let Some(gate) = &mut term.gate else { continue };
            let idle_for = now.since(gate.last_progress);
            // At the last representable moment, what is due later seems due too.
            if idle_for >= gate.within {
                gate.reported = true;
                actions.events.push(Event::Stuck {
                    name,
                    token: term.token,
                    idle_for,
                });
            }
        }
    }

    fn look_for_due_searches(&mut self, now: Moment, actions: &mut Actions) {
        for name in self.seats.due(&[Due::Look], now) {
            let names = vec![name.clone()];
            let id = self.send(
                now,
                Kind::Look,
                names.clone(),
                None,
                Operation::Look(name),
                actions,
            );
            self.mark_sent(&names, id);
        }
    }

    pub(super) fn mark_sent(&mut self, names: &[LeaseName], id: RequestId) {
        for name in names {
            match self.seats.get_mut(name) {
                Some(Seat::Campaign(campaign)) => campaign.request = Some(id),
                Some(Seat::Term(term)) => term.request = Some(id),
                Some(Seat::Departure(leaving)) => leaving.request = Some(id),
                Some(Seat::Search(search)) => search.request = Some(id),
                None => {}
            }
        }
    }
}
