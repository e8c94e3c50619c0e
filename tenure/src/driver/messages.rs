//! What the driver does when a handle wants something.

use super::{Bound, Driver, Message, NotWon, TERMS_AWAITED, Waiting};
use crate::clock;
use crate::term::Phase;
use std::time::Duration;
use tenure_core::{Command, FencingToken, Input, LeaseName, Moment};

impl Driver {
    pub(super) fn message(&mut self, message: Message) {
        match message {
            Message::Campaign(waiting) => self.campaign(waiting),
            Message::Withdraw { name } => self.withdraw(name),
            Message::StepDown { name, token } => {
                self.enter(&name, token, &Phase::Ending);
                self.step(Input::Command(Command::StepDown { name, token }));
            }
            Message::WorkEnded {
                name,
                token,
                departed,
            } => {
                if let Some(departed) = departed {
                    let place = self.places.entry(name.clone()).or_default();
                    place.await_departure(token, departed);
                    if place.term.as_ref().is_none_or(|term| term.token() != token) {
                        // It ended before by itself: there is nothing to release.
                        place.answer_departures(token, None);
                        self.tidy(&name);
                    }
                }
                let command = self.end_of_work(name, token);
                self.step(Input::Command(command));
            }
            Message::Bind {
                name,
                token,
                has_ended,
            } => {
                self.bound.push(Bound {
                    name,
                    token,
                    has_ended,
                });
                self.beat_soon();
            }
            Message::Extend { name, token } => self.step(Input::Command(Command::Extend { name, token })),
            Message::Progress { name } => {
                if let Some(news) = self.progress.look(&name) {
                    self.step(Input::Command(news));
                }
            }
            Message::Obstacle { name, told } => {
                // Whoever asked may have waited long enough for this, too.
                let _ = told.send(self.obstacle(&name));
            }
            Message::Hear { heard } => {
                // Whoever asked may be gone.
                let _ = heard.send(());
            }
            Message::Close { closed } => {
                self.closing = true;
                self.terms_awaited_until = closed.as_ref().map(|_| clock::now().after(TERMS_AWAITED));
                self.closed = closed;
                self.leave();
            }
        }
    }

    fn campaign(&mut self, waiting: Waiting) {
        if self.closing {
            // Whoever waits learns it by being dropped.
            return;
        }
        let name = waiting.name.clone();
        // A deadline that has passed comes first: whoever was told of the loss may campaign again.
        if self.wake.is_some_and(|wake| wake <= clock::now()) {
            self.step(Input::Tick);
        }
        let place = self.places.entry(name.clone()).or_default();
        if place.admit(waiting, clock::now()) {
            self.plan.meter.wanted(&name, true);
            self.first_attempts.want(name.clone());
            self.follow();
            let looks = |place: &super::Place| place.is_looked_at();
            if let Some(number) = self.first_attempts.held_back(&name)
                && self.places.get(&name).is_some_and(looks)
            {
                self.await_look(name, number);
            }
        } else {
            self.tidy(&name);
        }
    }

    /// Whoever waits here takes the lease from the term itself: one request instead of two.
    pub(super) fn end_of_work(&mut self, name: LeaseName, token: FencingToken) -> Command {
        let place = self.places.get_mut(&name);
        if self.closing || !place.is_some_and(|place| place.hands_on(token, clock::now())) {
            return Command::WorkEnded { name, token };
        }
        Command::HandOn {
            token,
            note: self.plan.note.clone(),
            progress_within: self.progress_within(&name),
            max_hold: self.max_hold(&name),
            name,
        }
    }

    pub(super) fn campaign_for(&self, name: LeaseName) -> Command {
        Command::Campaign {
            note: self.plan.note.clone(),
            progress_within: self.progress_within(&name),
            max_hold: self.max_hold(&name),
            name,
        }
    }

    /// How long a lease may be held by who waits for it here: the same for all who do.
    fn max_hold(&self, name: &LeaseName) -> Option<Duration> {
        self.places.get(name).and_then(super::Place::max_hold)
    }

    /// How long it may be held without progress: as the plan says, or who waits for it.
    pub(super) fn progress_within(&self, name: &LeaseName) -> Option<Duration> {
        let waiting = self.places.get(name).and_then(super::Place::progress_within);
        self.plan.progress_within.or(waiting)
    }

    /// The campaign that is withdrawn may be another than the one that waits, which came after it or kept it
    /// out.
    fn withdraw(&mut self, name: LeaseName) {
        let Some(place) = self.places.get_mut(&name) else {
            return;
        };
        let somebody_waits = place.forget_those_who_left();
        if !somebody_waits && place.term.is_none() {
            self.rest(&name);
            self.tidy(&name);
            self.first_attempts.done(&name);
            self.step(Input::Command(Command::Withdraw { name }));
        }
    }

    /// Ends every campaign; a term ends with its handle, which may outlive us.
    pub(super) fn leave(&mut self) {
        let waited_for = |(name, place): (&LeaseName, &mut super::Place)| {
            place.forget_all_who_wait().then(|| name.clone())
        };
        let names: Vec<LeaseName> = self.places.iter_mut().filter_map(waited_for).collect();
        for name in names {
            self.tidy(&name);
            self.first_attempts.done(&name);
            self.step(Input::Command(Command::Withdraw { name }));
        }
    }

    pub(super) fn enter(&self, name: &LeaseName, token: FencingToken, phase: &Phase) {
        if let Some(term) = self.places.get(name).and_then(|place| place.term.as_ref())
            && term.token() == token
        {
            term.enter(phase.clone());
        }
    }

    /// Forgets a lease that nobody here wants or holds.
    pub(super) fn tidy(&mut self, name: &LeaseName) {
        if self.places.get(name).is_some_and(super::Place::is_empty) {
            self.places.remove(name);
            self.plan.meter.wanted(name, false);
        }
    }

    /// Looks at what nobody tells, when it is time.
    pub(super) fn beat(&mut self) {
        let now = clock::now();
        if self.beat_at.is_none_or(|at| now < at) {
            return;
        }
        self.beat_at = None;
        self.end_what_is_bound();
        if self.engine.is_idle() && self.requests.is_empty() {
            self.plan.meter.nobody_asks(self.plan.timing.ttl().duration());
        }
        let idle_watches = self.watches.end_idle(now);
        if idle_watches || !self.bound.is_empty() || self.plan.meter.tells_of_an_outage() {
            self.beat_soon();
        }
    }

    pub(super) fn beat_soon(&mut self) {
        let soon: Moment = clock::now().after(self.plan.timing.renew_every());
        self.beat_at.get_or_insert(soon);
    }

    /// Lets the handles go whose work has ended without a word. The last one of a term says that it has
    /// ended.
    fn end_what_is_bound(&mut self) {
        let places = &self.places;
        self.bound.retain(|bound| {
            let term = places.get(&bound.name).and_then(|place| place.term.as_ref());
            term.is_some_and(|term| term.token() == bound.token) && !(bound.has_ended)()
        });
    }

    pub(super) fn refuse(&mut self, name: &LeaseName, why: impl Fn() -> NotWon) {
        if let Some(place) = self.places.get_mut(name) {
            place.refuse_all(why);
        }
        self.rest(name);
        self.tidy(name);
    }

    /// Nobody here needs a watch of this lease any more.
    pub(super) fn rest(&mut self, name: &LeaseName) {
        if self.watches.rest(name, clock::now()) {
            self.beat_soon();
        }
    }
}
