//! Holding a lease: deadline, doubt, renewal, progress, and the ways a term ends.

use super::due::Due;
use super::heart::TAKE_ALONG;
use super::seat::{Hold, Seat, Term};
use super::{Actions, Cause, Engine, Event, RequestId};
use crate::{Candidate, FencingToken, Lease, LeaseName, Moment, Occupancy, Renewed, StoreError, Ttl, Wish};
use std::time::Duration;

impl Engine {
    /// Ends every term whose deadline has come: without any reply, and before anything else is taken in.
    pub(super) fn end_overdue_terms(&mut self, now: Moment, actions: &mut Actions) {
        for name in self.seats.due(&[Due::Doubt, Due::Deadline], now) {
            let Some(Seat::Term(term)) = self.seats.get(&name) else {
                continue;
            };
            if term.until > now {
                continue;
            }
            let cause = match (term.last_hold(), term.gate) {
                (Some(hold), _) => Cause::MaxHold(hold.max),
                (None, Some(gate)) if gate.reported => Cause::NoProgress(now.since(gate.last_progress)),
                (None, Some(_) | None) => Cause::Deadline(term.last_error.clone()),
            };
            self.end(&name, cause, actions);
        }
    }

    /// Ends a term now. What it held in the store is left to expire, or is another's already.
    pub(super) fn end(&mut self, name: &LeaseName, cause: Cause, actions: &mut Actions) {
        if let Some(Seat::Term(term)) = self.seats.get(name) {
            actions.events.push(Event::Ended {
                name: name.clone(),
                token: term.token,
                cause,
            });
            self.seats.remove(name);
        }
    }

    pub(super) fn report_doubt(&mut self, now: Moment, actions: &mut Actions) {
        for name in self.seats.due(&[Due::Doubt], now) {
            let Some(Seat::Term(term)) = self.seats.get_mut(&name) else {
                continue;
            };
            term.doubted = true;
            actions.events.push(Event::Doubted {
                name,
                token: term.token,
                remaining: term.until.since(now),
            });
        }
    }

    pub(super) fn begin_to_end(&mut self, now: Moment, name: &LeaseName, token: FencingToken) {
        if let Some(term) = self.term_mut(name, token) {
            term.ending_since.get_or_insert(now);
        }
    }

    pub(super) fn deadline_seen(&mut self, name: &LeaseName, token: FencingToken, actions: &mut Actions) {
        let last_error = self.term_mut(name, token).map(|term| term.last_error.clone());
        if let Some(error) = last_error {
            self.end(name, Cause::Deadline(error), actions);
        }
    }

    pub(super) fn extend_now(&mut self, now: Moment, name: &LeaseName, token: FencingToken) {
        let pause = self.timing.renew_every / TAKE_ALONG;
        if let Some(term) = self.term_mut(name, token)
            && term.sent_at.after(pause) <= now
            && term.last_error.is_none()
        {
            term.renew_at = term.renew_at.min(now);
        }
    }

    pub(super) fn progress(&mut self, name: &LeaseName, token: FencingToken, at: Moment, now: Moment) {
        let Some(Term {
            gate: Some(gate),
            renew_at,
            ..
        }) = self.term_mut(name, token)
        else {
            return;
        };
        gate.last_progress = gate.last_progress.max(at);
        if gate.reported && now.since(gate.last_progress) < gate.within {
            gate.reported = false;
            *renew_at = now;
        }
    }

    pub(super) fn renewed(
        &mut self,
        now: Moment,
        request: RequestId,
        sent_at: Moment,
        name: &LeaseName,
        result: Result<Renewed, StoreError>,
        actions: &mut Actions,
    ) {
        let candidate = self.candidate.clone();
        let Some(Seat::Term(term)) = self.seats.get_mut(name) else {
            return;
        };
        if term.request != Some(request) {
            return;
        }
        term.request = None;
        match result {
            Ok(Renewed::Extended { ttl, wish }) => self.extended(now, sent_at, name, ttl, wish, actions),
            Ok(Renewed::Lost(lease)) => {
                let cause = cause_of_loss(lease.as_deref(), &candidate, term.token);
                self.end(name, cause, actions);
            }
            Err(error) => {
                term.last_error = Some(error.clone());
                term.renew_at = now.after(self.timing.retry_every);
                let remaining = term.until.since(now);
                let token = term.token;
                actions.events.push(Event::RenewalFailed {
                    name: name.clone(),
                    token,
                    error,
                    remaining,
                });
            }
        }
    }

    fn extended(
        &mut self,
        now: Moment,
        sent_at: Moment,
        name: &LeaseName,
        ttl: Ttl,
        wish: Wish,
        actions: &mut Actions,
    ) {
        let trusted = sent_at.after(self.timing.trust(ttl));
        let (regular, first) = (self.renewal_interval(ttl), self.first_interval(ttl));
        let (grace, retry_every) = (self.timing.grace, self.timing.retry_every);
        let Some(Seat::Term(term)) = self.seats.get_mut(name) else {
            return;
        };
        // After one that came late, as at first: whoever waited for the store to come back has renewed with
        // all others.
        let before = term.until.before(self.timing.trust(term.granted));
        let is_late = sent_at.since(before) >= regular + retry_every;
        let renewal = if is_late { first } else { regular };
        let slack = term.until.since(now);
        // Also if that is sooner than before: the store may have granted less this time.
        term.until = Hold::cap(term.hold, trusted);
        term.granted = ttl;
        term.sent_at = sent_at;
        term.renew_at = sent_at.after(renewal).max(now);
        term.last_error = None;
        let (name, token, round_trip) = (name.clone(), term.token, now.since(sent_at));
        let asked = wish == Wish::StepDown && term.ending_since.is_none();
        let reassured = term.doubted && term.ending_since.is_none() && now < term.until.before(grace);
        if reassured {
            term.doubted = false;
        }
        if asked {
            term.ending_since = Some(now);
        }
        let until = term.until;
        actions.events.push(Event::Renewed {
            name: name.clone(),
            token,
            until,
            round_trip,
            slack,
        });
        if reassured {
            actions.events.push(Event::Reassured {
                name: name.clone(),
                token,
            });
        }
        if asked {
            actions.events.push(Event::AskedToStepDown { name, token });
        }
    }

    /// A store may grant less than was asked; a third of what it granted is always soon enough.
    pub(super) fn renewal_interval(&self, granted: Ttl) -> Duration {
        if granted >= self.timing.ttl {
            self.timing.renew_every
        } else {
            self.timing.renew_every.min(granted.duration() / 3)
        }
    }

    /// The interval before the first renewal, shorter by the phase of this process: processes that have begun
    /// together beat apart from then on. Not each one, since standbys look on the grid of the others (G18).
    pub(super) fn first_interval(&self, granted: Ttl) -> Duration {
        let interval = self.renewal_interval(granted);
        interval - interval / 4 / 256 * u32::from(self.phase)
    }

    pub(super) fn term_mut(&mut self, name: &LeaseName, token: FencingToken) -> Option<&mut Term> {
        match self.seats.get_mut(name) {
            Some(Seat::Term(term)) if term.token == token => Some(term),
            Some(Seat::Term(_) | Seat::Campaign(_) | Seat::Departure(_) | Seat::Search(_)) | None => None,
        }
    }
}

fn cause_of_loss(lease: Option<&Lease>, candidate: &Candidate, token: FencingToken) -> Cause {
    match lease {
        Some(lease) if lease.token != token || lease.holder.incarnation != candidate.incarnation => {
            let by = (lease.occupancy() == Occupancy::Held).then(|| lease.holder.clone());
            Cause::Succeeded {
                token: lease.token,
                by,
            }
        }
        Some(_) | None => Cause::Vanished,
    }
}
