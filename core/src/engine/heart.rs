//! One heart: what is due is sent together, in as few requests as the store's batch limit allows.

use super::seat::Seat;
use super::{Actions, Engine, Event, Kind, Operation, RequestId};
use crate::{Acquire, LeaseName, Moment, Release, Renew};

/// A due renewal takes along every other one that is due within this part of the renewal interval, so that
/// many leases need few calls.
const TAKE_ALONG: u32 = 8;

impl Engine {
    pub(super) fn send_due_requests(&mut self, now: Moment, actions: &mut Actions) {
        self.attempt_due_campaigns(now, actions);
        self.renew_due_terms(now, actions);
        self.release_due_departures(now, actions);
        self.look_for_due_searches(now, actions);
    }

    fn attempt_due_campaigns(&mut self, now: Moment, actions: &mut Actions) {
        let mut due = Vec::new();
        for (name, seat) in &self.seats {
            if let Seat::Campaign(campaign) = seat
                && campaign.request.is_none()
                && campaign.next_at <= now
            {
                due.push(Acquire {
                    name: name.clone(),
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
        let horizon = now.after(self.timing.renew_every / TAKE_ALONG);
        let incarnation = self.candidate.incarnation;
        let mut any_due = false;
        let mut due: Vec<(Renew, Moment)> = Vec::new();
        for (name, seat) in &self.seats {
            let Seat::Term(term) = seat else { continue };
            // Work without progress is not taken along: the beats of neighbours would keep its term for ever.
            let idle = term
                .gate
                .is_some_and(|gate| now.since(gate.last_progress) >= gate.within);
            let horizon = if idle { now } else { horizon };
            if term.request.is_none() && !term.is_let_go() && term.renew_at <= horizon {
                any_due |= term.renew_at <= now;
                let (token, attempt) = (term.token, term.attempt);
                let ttl = self.timing.ttl;
                due.push((
                    Renew {
                        name: name.clone(),
                        incarnation,
                        token,
                        attempt,
                        ttl,
                    },
                    term.until,
                ));
            }
        }
        if !any_due {
            return;
        }
        for batch in due.chunks(self.batch_max.get()) {
            // No request may outlast the term that it is to extend.
            let limit = batch.iter().map(|(_, until)| *until).min();
            let renewals: Vec<Renew> = batch.iter().map(|(renew, _)| renew.clone()).collect();
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

    /// A worker that reports no progress is not renewed, so that it does not lead for ever.
    fn stop_stuck_terms(&mut self, now: Moment, actions: &mut Actions) {
        for (name, seat) in &mut self.seats {
            let Seat::Term(term) = seat else { continue };
            if term.last_hold().is_some() {
                continue;
            }
            let Some(gate) = &mut term.gate else { continue };
            let idle_for = now.since(gate.last_progress);
            if !gate.reported && term.renew_at <= now && idle_for >= gate.within {
                gate.reported = true;
                actions.events.push(Event::Stuck {
                    name: name.clone(),
                    token: term.token,
                    idle_for,
                });
            }
        }
    }

    fn release_due_departures(&mut self, now: Moment, actions: &mut Actions) {
        let incarnation = self.candidate.incarnation;
        let mut due: Vec<Release> = Vec::new();
        for (name, seat) in &self.seats {
            if let Seat::Departure(leaving) = seat
                && leaving.request.is_none()
                && leaving.next_at <= now
            {
                let (token, attempt) = (leaving.token, leaving.attempt);
                due.push(Release {
                    name: name.clone(),
                    incarnation,
                    token,
                    attempt,
                });
            }
        }
        for batch in due.chunks(self.batch_max.get()) {
            let names: Vec<LeaseName> = batch.iter().map(|release| release.name.clone()).collect();
            let operation = Operation::Release(batch.to_vec());
            let id = self.send(now, Kind::Release, names.clone(), None, operation, actions);
            self.mark_sent(&names, id);
        }
    }

    fn look_for_due_searches(&mut self, now: Moment, actions: &mut Actions) {
        let due: Vec<LeaseName> = self
            .seats
            .iter()
            .filter(|(_, seat)| matches!(seat, Seat::Search(s) if s.request.is_none() && s.next_at <= now))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
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

    fn mark_sent(&mut self, names: &[LeaseName], id: RequestId) {
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
