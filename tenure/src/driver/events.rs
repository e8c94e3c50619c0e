//! What the driver does when something has happened.

use super::place::Seen;
use super::requests::{Asker, Sent};
use super::{Driver, LateLook, NotWon, Obstacle, Place, WATCH_TERM_AFTER, announce_not_taken_up};
use crate::clock;
use crate::term::{Phase, SharedTerm};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Cause, Command, Event, Fault, Grant, Input, Lease, LeaseName, Moment, Reply, StoreError};

impl Driver {
    pub(super) fn take_in(&mut self, event: &Event) {
        match event {
            Event::Acquired { name, grant, .. } => {
                self.first_attempts.done(name);
                self.won(name, grant);
            }
            Event::CampaignEnded { name, error } => {
                self.first_attempts.done(name);
                self.refuse(name, || NotWon::Store(error.clone()));
            }
            Event::AskedToStepDown { name, token } => self.enter(name, *token, &Phase::Ending),
            // Progress may have been reported a moment ago, and not been told of yet.
            Event::Stuck { name, .. } => self.next.extend(self.progress.look(name)),
            Event::Ended { name, token, cause } => {
                self.enter(name, *token, &Phase::Over(Box::new(cause.clone())));
                self.ended(name, *token, cause);
            }
            Event::Departed {
                name,
                token,
                departure,
            } => {
                if let Some(place) = self.places.get_mut(name) {
                    place.answer_departures(*token, Some(departure));
                    if self.plan.stands_back {
                        let watch = self.plan.store.traits().watch;
                        let until = place.stand_back(*token, clock::now(), watch);
                        self.pauses.extend(until.map(|until| (until, name.clone())));
                    }
                    self.tidy(name);
                }
                self.first_attempts.call(name);
            }
            Event::Withdrawn { name } => self.first_attempts.call(name),
            Event::Standby { lease, .. } => self.stand_by(lease),
            Event::AttemptFailed { name, error, .. } => self.attempt_failed(name, error),
            Event::Renewed { .. }
            | Event::RenewalFailed { .. }
            | Event::Doubted { .. }
            | Event::Reassured { .. }
            | Event::ReleaseFailed { .. } => {}
        }
    }

    fn won(&mut self, name: &LeaseName, grant: &Grant) {
        let Some(belief) = self.engine.belief(name) else {
            return;
        };
        let foreign = self.foreign_before(grant).cloned();
        let term = Arc::new(SharedTerm::new(belief));
        if let Some(within) = self.progress_within(name) {
            self.progress.begin(name, term.clone(), within);
        }
        let place = self.places.entry(name.clone()).or_default();
        if let Some(before) = foreign {
            place.refuse_all(|| NotWon::OtherApplication(before.candidate.clone()));
        }
        match place.hand_over(grant, &term) {
            Seen::Yes => {
                let due = clock::now().after(self.plan.timing.ttl().duration());
                self.offers.add(due, name.clone(), term);
            }
            Seen::No => {
                // Not by a message of its handle: the next campaign may be in the queue before that.
                term.end_belief();
                let (name, token) = (name.clone(), grant.token);
                self.next.push_back(Command::WorkEnded { name, token });
            }
        }
        if !self.watches.lead(name, WATCH_TERM_AFTER) {
            self.rest(name);
        }
    }

    fn ended(&mut self, name: &LeaseName, token: tenure_core::FencingToken, cause: &Cause) {
        self.progress.end(name);
        let Some(place) = self.places.get_mut(name) else {
            return;
        };
        place.forget_term(cause, clock::now());
        // A term that ended by itself departs no more: whoever waits for that learns it now.
        if *cause != Cause::GivenBack {
            place.answer_departures(token, None);
        }
        if !place.forget_those_who_left() {
            self.rest(name);
            self.tidy(name);
        } else if !self.engine.campaigns_for(name) {
            // Else it was handed on, and its campaign has begun already.
            self.first_attempts.want(name.clone());
        }
    }

    fn stand_by(&mut self, lease: &Lease) {
        let name = &lease.name;
        if self.is_foreign(&lease.holder.id) {
            self.refuse(name, || NotWon::OtherApplication(lease.holder.id.clone()));
        }
        self.end_looks(name, Obstacle::Held(Box::new(lease.clone())));
    }

    fn attempt_failed(&mut self, name: &LeaseName, error: &StoreError) {
        self.end_looks(name, Obstacle::Store(error.clone()));
    }

    /// The first attempt has failed: who came for one look leaves, and for who stays the lease is watched.
    fn end_looks(&mut self, name: &LeaseName, obstacle: Obstacle) {
        self.first_attempts.done(name);
        let is_waited_for = |place: &mut Place| {
            place.end_look(|| obstacle.clone().into());
            let anybody = place.forget_those_who_left();
            place.meet(obstacle);
            anybody
        };
        if self.places.get_mut(name).is_some_and(is_waited_for) {
            self.watches.wait_for(name);
        } else {
            // Nobody here wants it any more. Whoever has left says so later, and then there is no place to be
            // found.
            self.rest(name);
            self.tidy(name);
            self.next.push_back(Command::Withdraw { name: name.clone() });
        }
    }

    /// What nobody has taken up goes to the next here, or is given back.
    pub(super) fn end_offers(&mut self) {
        while let Some((name, token)) = self.offers.next_over(clock::now()) {
            announce_not_taken_up(&self.candidate, &name, token, self.plan.timing.ttl().duration());
            let command = self.end_of_work(name, token);
            self.step(Input::Command(command));
        }
    }

    /// Whoever has let others go first may campaign again, and whose look has failed may look again.
    pub(super) fn end_pauses(&mut self) {
        let now = clock::now();
        while self.pauses.first().is_some_and(|(until, _)| *until <= now)
            && let Some((_, name)) = self.pauses.pop_first()
        {
            self.first_attempts.call(&name);
        }
    }

    /// Whether the store itself has answered an attempt. A look that finds no other application's lease is
    /// half of one, and the other half may never be answered.
    pub(super) fn is_attempt_answered(&self, sent: &Sent) -> bool {
        let error = match (&sent.asker, &sent.reply) {
            (Asker::Engine(_), Some(Reply::Acquired(Ok(_)))) => return true,
            (Asker::Look(_), Some(Reply::Looked(Ok(found)))) => {
                return found
                    .as_ref()
                    .is_some_and(|lease| self.is_foreign(&lease.holder.id));
            }
            (Asker::Engine(_), Some(Reply::Acquired(Err(error))))
            | (Asker::Look(_), Some(Reply::Looked(Err(error)))) => error,
            (Asker::Engine(_) | Asker::Look(_), _) => return false,
        };
        !matches!(
            error.fault,
            Fault::Unreachable | Fault::TimedOut | Fault::AnotherStore
        )
    }

    /// The longest that a first attempt takes: one request, and one more where the lease is looked at first.
    pub(super) fn attempt_max(&self) -> Duration {
        let requests = if self.plan.tag.is_some() { 2 } else { 1 };
        self.plan.timing.request_timeout() * requests
    }

    /// Whether the store has answered an attempt in the time of one.
    fn is_answered(&self, now: Moment) -> bool {
        self.answered_at.after(self.attempt_max()) > now
    }

    /// What stands between a lease and those who wait for it here: where it is one of this process, nothing
    /// that is told.
    pub(super) fn obstacle(&self, name: &LeaseName) -> Option<Obstacle> {
        let place = self.places.get(name).filter(|place| place.is_waited_for())?;
        let silent = || {
            let message = format!("lease \"{name}\": the store has not answered; is it reachable?");
            Obstacle::Store(StoreError::not_applied(Fault::TimedOut, message))
        };
        let met = place.obstacle().cloned();
        met.or_else(|| self.is_silent_on(place, clock::now()).then(silent))
    }

    /// Whether the store has left attempts for these unanswered. While somebody here held the lease it was
    /// not asked, and so has answered nothing: half of a request's time must be over since. Not all of it, as
    /// whoever waits for just that long has come before its attempt.
    fn is_silent_on(&self, place: &Place, now: Moment) -> bool {
        let asked_for = self.plan.timing.request_timeout() / 2;
        let is_asked = place
            .attempted_from()
            .is_some_and(|from| from.after(asked_for) <= now);
        is_asked && !self.is_answered(now)
    }

    /// Whoever came for one look does not wait for a release that the store does not answer, nor for others'
    /// attempts while it answers none.
    pub(super) fn end_late_looks(&mut self) {
        let now = clock::now();
        let answers = self.is_answered(now);
        while self.late_looks.front().is_some_and(|look| look.due <= now)
            && let Some(LateLook { name, number, .. }) = self.late_looks.pop_front()
        {
            let why = if self.first_attempts.is_parked(&name, number) {
                "the store does not tell whether this process has given it back"
            } else if self.first_attempts.held_back(&name) != Some(number) {
                continue;
            } else if answers {
                self.await_look(name, number);
                continue;
            } else {
                "the store answers none of this process's attempts, and this one was not begun"
            };
            let Some(place) = self.places.get_mut(&name) else {
                continue;
            };
            place.end_look(|| {
                let message = format!("lease \"{name}\": {why}; is the store reachable?");
                NotWon::Store(StoreError::not_applied(Fault::TimedOut, message))
            });
            if !place.forget_those_who_left() {
                self.first_attempts.done(&name);
                self.tidy(&name);
            }
        }
    }
}
