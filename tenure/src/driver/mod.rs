//! What drives an engine: it sleeps, asks the store, and passes on what happens.
//!
//! One driver serves every lease that its owner wants: an election has one, a lock manager up to a hundred
//! thousand. It runs on the thread of its store's requests, or on one of its own where the store has none, so
//! that user code that blocks every worker of its runtime cannot starve renewals. On one of its own, whoever
//! asks for something may take its next step (see `helm`); renewals are never among what they take.

mod answer;
mod campaign;
mod caught;
mod cut_off;
mod events;
mod first_attempts;
mod handle;
mod hear;
mod helm;
mod jitter;
mod logged;
mod message;
mod messages;
mod offers;
mod ownership;
mod permit;
mod place;
mod plan;
mod progress;
mod requests;
mod row;
#[cfg(not(feature = "metrics"))]
mod unmetered;
mod unwatched;
mod watcher;
mod watches;
mod withdrawal;

#[cfg(feature = "metrics")]
pub(crate) use crate::metrics::{About, Meter};
#[cfg(not(feature = "metrics"))]
pub(crate) use unmetered::{About, Meter};

pub(crate) use answer::answer_within;
pub(crate) use campaign::{Campaign, Conditions};
pub(crate) use handle::DriverHandle;
pub(crate) use logged::{exact_milliseconds, milliseconds};
pub(crate) use message::{HasEnded, Message, NotWon, Obstacle, Queueing, Waiting, Won};
pub(crate) use offers::announce_not_taken_up;
pub(crate) use permit::{Permit, Permits};
pub(crate) use plan::{BackOff, Places, Plan, Recorder, Watching};
pub(crate) use row::{HAND_ONS, HAND_ONS_FOR};
pub(crate) use watcher::{Listening, watch_ends_or_look, watch_scope};
pub(crate) use withdrawal::Withdrawal;

use crate::clock::{self, BootTimer};
use crate::deadline::Extension;
use crate::sync::{blocking, broadcast, mpsc, run_on_a_thread};
use crate::term::Phase;
use cut_off::CutOff;
use first_attempts::{FirstAttempts, Next, Readiness};
use hear::{Happening, Turn};
use helm::{Allowance, Helm};
use offers::Offers;
use place::Place;
use progress::Progress;
use requests::Requests;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;
use tenure_core::{
    Actions, Authority, Cause, Command, Engine, Event, FencingToken, Input, LeaseName, Moment, Operation,
};
use watches::Watches;

/// How many events a slow subscriber may lag behind before it misses the oldest.
pub(crate) const EVENTS_KEPT: usize = 256;

/// How long a term goes on before it is watched for wishes; those that came before are read then. A short
/// job that is not contended needs no watch, and ending one costs some 20 ms where the kernel keeps it.
const WATCH_TERM_AFTER: Duration = Duration::from_millis(250);

/// How long who waits for a driver's end waits for terms: a task that was aborted lets go of its handle on
/// another thread, a moment later.
const TERMS_AWAITED: Duration = Duration::from_millis(50);

/// Starts it: on the thread of the store's requests, so that none of them needs another thread to be woken,
/// or on one of its own, beside which whoever asks [may drive](Helm).
pub(crate) fn start(plan: Plan, events: broadcast::Sender<Event>) -> io::Result<DriverHandle> {
    let (sender, messages) = mpsc::unbounded_channel();
    let (store, thread) = (plan.store.clone(), format!("tenure {}", plan.label));
    let allowance = Allowance::without_bound();
    let spent = allowance.clone();
    let driving = Box::pin(async move { Driver::new(plan, events).run(messages, spent).await });
    let Err(driving) = store.run_beside(driving) else {
        return Ok(DriverHandle::new(sender, None));
    };
    let helm = Helm::new(allowance);
    let driven = helm.clone();
    run_on_a_thread(thread, move || driven.drive(driving))?;
    Ok(DriverHandle::new(sender, Some(helm)))
}

struct Driver {
    plan: Plan,
    /// The candidate, for the log.
    candidate: String,
    engine: Engine,
    timer: BootTimer,
    wake: Option<Moment>,
    requests: Requests,
    watches: Watches,
    places: BTreeMap<LeaseName, Place>,
    first_attempts: FirstAttempts,
    /// Until when those who came for one look wait for what comes before it, in that order.
    late_looks: VecDeque<LateLook>,
    /// When the store itself answered an attempt last, whatever it said.
    answered_at: Moment,
    /// Campaigns that are [put off](FirstAttempts), by when they are called again: others are let have the
    /// lease first, or a look at it has failed.
    pauses: BTreeSet<(Moment, LeaseName)>,
    /// Terms that their winners have not taken up yet.
    offers: Offers,
    cut_off: CutOff,
    /// Leases that are looked at before a campaign begins: each by one look at a time.
    looking: BTreeSet<LeaseName>,
    progress: Progress,
    /// Handles that go with something that does not say so.
    bound: Vec<Bound>,
    /// When to look at what nobody tells: what is bound, watches that nobody needs, and whether anything is
    /// asked of a store that could not be reached.
    beat_at: Option<Moment>,
    /// What the events of a step call for, when they have all been told.
    next: VecDeque<Command>,
    closing: bool,
    closed: Option<blocking::Sender<()>>,
    /// Until when who waits for that waits for terms, too.
    terms_awaited_until: Option<Moment>,
    /// Every handle is gone: no message will come.
    abandoned: bool,
    /// Whose turn it is to be heard.
    turn: Turn,
    events: broadcast::Sender<Event>,
}

/// A campaign that was held back or [parked](FirstAttempts), by its number.
struct LateLook {
    due: Moment,
    name: LeaseName,
    number: u64,
}

struct Bound {
    name: LeaseName,
    token: FencingToken,
    has_ended: HasEnded,
}

impl Driver {
    fn new(plan: Plan, events: broadcast::Sender<Event>) -> Self {
        let (candidate, timing) = (plan.candidate.clone(), plan.timing);
        let engine = Engine::new(candidate, timing, plan.store.traits().batch_max, plan.seed);
        let watches = Watches::new(
            plan.store.clone(),
            plan.watching,
            timing.retry_every(),
            timing.ttl().duration(),
        );
        Self {
            candidate: plan.candidate.to_string(),
            requests: Requests::new(plan.store.clone()),
            plan,
            engine,
            timer: BootTimer::new(),
            wake: None,
            watches,
            places: BTreeMap::new(),
            first_attempts: FirstAttempts::default(),
            late_looks: VecDeque::new(),
            answered_at: Moment::ZERO,
            pauses: BTreeSet::new(),
            offers: Offers::default(),
            cut_off: CutOff::default(),
            looking: BTreeSet::new(),
            progress: Progress::default(),
            bound: Vec::new(),
            beat_at: None,
            next: VecDeque::new(),
            closing: false,
            closed: None,
            terms_awaited_until: None,
            abandoned: false,
            turn: Turn::Anybody,
            events,
        }
    }

    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>, allowance: Allowance) {
        loop {
            allowance.spend().await;
            match self.hear(&mut messages).await {
                Happening::Message(Some(message)) => self.message(message),
                // Every handle is gone without a word: leave as if told to.
                Happening::Message(None) => {
                    self.abandoned = true;
                    self.leave();
                }
                Happening::Reply(input) => self.step(input),
                Happening::Looked(name, reply) => self.looked(name, reply),
                Happening::Watch(event) => self.step(Input::Watch(event)),
                Happening::Tick => {
                    self.beat();
                    self.end_late_looks();
                    self.end_pauses();
                    self.end_offers();
                    self.terms_awaited_until.take_if(|until| *until <= clock::now());
                    self.step(Input::Tick);
                }
            }
            // What is left then lives by its handles, and whoever waits may have them: it would wait for
            // itself.
            if self.terms_awaited_until.is_none() && self.engine.is_idle_but_for_terms() {
                self.answer_closed();
            }
            if self.engine.is_idle() && (self.closing || self.abandoned) {
                // Before the answer: the process may end with it.
                self.plan.recorder = None;
                self.answer_closed();
                return;
            }
        }
    }

    fn answer_closed(&mut self) {
        if let Some(closed) = self.closed.take() {
            // It may have waited long enough.
            let _ = closed.send(());
        }
    }

    /// Steps the engine, and then with what its events call for.
    fn step(&mut self, input: Input) {
        // What progress the work has reported since the last step comes first: it may keep the term.
        for command in self.progress.news() {
            self.apply(Input::Command(command));
        }
        self.apply(input);
        self.follow();
    }

    /// Does what the events of a step call for.
    fn follow(&mut self) {
        while let Some(command) = self.next_command() {
            self.apply(Input::Command(command));
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        if let Some(command) = self.next.pop_front() {
            return Some(command);
        }
        loop {
            let (places, engine, now) = (&self.places, &self.engine, clock::now());
            let readiness = |name: &LeaseName| match places.get(name).filter(|place| place.is_waited_for()) {
                Some(place) if engine.is_leaving(name) || place.stands_back(now) => Readiness::Leaving,
                Some(_) => Readiness::Ready,
                // Whoever was held back may have left.
                None => Readiness::Unwanted,
            };
            match self.first_attempts.next(readiness)? {
                Next::Begin(name) if self.plan.tag.is_none() => return Some(self.campaign_for(name)),
                Next::Begin(name) => self.look_first(name),
                Next::Parked(name, number) => self.await_look(name, number),
            }
        }
    }

    /// If somebody comes for one look at this, it is over when the store has had time enough to answer.
    fn await_look(&mut self, name: LeaseName, number: u64) {
        let due = clock::now().after(self.attempt_max());
        self.late_looks.push_back(LateLook { due, name, number });
    }

    fn apply(&mut self, input: Input) {
        let recorded = self.plan.recorder.as_ref().map(|_| input.clone());
        let ending = match &input {
            Input::Command(Command::StepDown { name, .. }) => Some(name.clone()),
            Input::Tick | Input::Answer { .. } | Input::Watch(_) | Input::Command(_) => None,
        };
        let at = clock::now();
        let actions = self.engine.step(at, input);
        // Before anything is told of it.
        for name in extended(&actions).chain(&ending) {
            self.publish(name);
        }
        if let (Some(recorder), Some(input)) = (&mut self.plan.recorder, recorded) {
            recorder.record(at, &input, &actions);
        }
        self.wake = actions.wake.map(|wake| wake.at);
        for event in actions.events {
            self.tell(event);
        }
        for request in actions.requests {
            if !self.is_for_a_place(&request.operation) {
                self.plan.meter.sent(&request.operation);
            }
            self.requests.send(request);
        }
    }

    fn tell(&mut self, mut event: Event) {
        self.cut_off
            .amend(&mut event, clock::now(), self.plan.timing.ttl().duration());
        self.plan.announce(&self.candidate, &event);
        if !self.plan.is_place(event.name()) {
            self.plan.meter.event(&event);
        }
        self.take_in(&event);
        // Nobody needs to listen.
        let _ = self.events.send(event);
    }

    fn is_for_a_place(&self, operation: &Operation) -> bool {
        matches!(operation, Operation::Acquire(acquire) if self.plan.is_place(&acquire.name))
    }

    /// Lets every thread see what the engine believes of a term from now on.
    ///
    /// Somebody may see the deadline pass while an answer that came in time is taken in. Then it came too
    /// late after all, and the engine is told so: authority that was seen to be gone never comes back.
    fn publish(&mut self, name: &LeaseName) {
        let Some(term) = self.places.get(name).and_then(|place| place.term.as_ref()) else {
            return;
        };
        let Some(belief) = self
            .engine
            .belief(name)
            .filter(|belief| belief.token == term.token())
        else {
            return;
        };
        if term.extend(&belief) == Extension::Published || term.has_been_ended() {
            // Ended by its handle: the message is on its way.
            return;
        }
        let (name, token) = (name.clone(), belief.token);
        self.next.push_back(Command::DeadlineSeen { name, token });
    }
}

/// The leases whose terms were extended, or began to be ended.
fn extended(actions: &Actions) -> impl Iterator<Item = &LeaseName> {
    actions.events.iter().filter_map(|event| match event {
        Event::Renewed { name, .. } | Event::AskedToStepDown { name, .. } => Some(name),
        _ => None,
    })
}

impl Drop for Driver {
    /// However the driver ends, by a panic too, nobody may believe in its terms longer than their deadlines;
    /// nothing renews them any more, so better nobody at all.
    fn drop(&mut self) {
        for term in self.places.values().filter_map(|place| place.term.as_ref()) {
            if term.authority() != Authority::None {
                term.enter(Phase::Over(Box::new(Cause::Deadline(None))));
            }
        }
    }
}
