//! The thread that drives an engine: it sleeps, asks the store, and passes on what happens.
//!
//! Renewals run on a thread and a runtime of their own, so that user code that blocks every worker of its
//! runtime cannot starve them.

mod announce;
mod message;
mod plan;
mod requests;
mod watcher;

pub(crate) use message::{Message, NotWon, Waiting};
pub(crate) use plan::{Plan, Recorder};
pub(crate) use watcher::start as watch_lease;

use crate::Leadership;
use crate::clock::{self, BootTimer};
use crate::deadline::Extension;
use crate::sync::{JoinSet, blocking, broadcast, mpsc, oneshot, run_on_a_thread, select};
use crate::term::{Phase, SharedTerm};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Actions, Authority, Command, Departure, Engine, Event, FencingToken, Grant, Input, Moment, WatchEvent,
};

/// How many events a slow subscriber may lag behind before it misses the oldest.
pub(crate) const EVENTS_KEPT: usize = 256;

/// How long a term goes on before it is watched for wishes; until then its renewals tell of them. A short
/// job that is not contended needs no watch, and ending one costs some 20 ms where the kernel keeps it.
const WATCH_TERM_AFTER: Duration = Duration::from_millis(250);

/// Starts the thread.
pub(crate) fn start(
    plan: Plan,
    events: broadcast::Sender<Event>,
) -> io::Result<mpsc::UnboundedSender<Message>> {
    let (sender, messages) = mpsc::unbounded_channel();
    let thread = format!("tenure {}", plan.name);
    run_on_a_thread(thread, move || Driver::new(plan, events).run(messages))?;
    Ok(sender)
}

struct Driver {
    plan: Plan,
    engine: Engine,
    timer: BootTimer,
    wake: Option<Moment>,
    requests: JoinSet<Option<Input>>,
    watch: Option<mpsc::Receiver<WatchEvent>>,
    waiting: Option<Waiting>,
    term: Option<Arc<SharedTerm>>,
    departing: Vec<(FencingToken, oneshot::Sender<Departure>)>,
    closing: bool,
    closed: Option<blocking::Sender<()>>,
    /// Whether renewals have stopped for want of progress.
    stuck: bool,
    /// Whether the term began after whoever campaigned for it was gone.
    unseen: bool,
    /// Every handle is gone: no message will come.
    abandoned: bool,
    events: broadcast::Sender<Event>,
    /// Who was seen to lead last, and since when nobody is known to, for the log.
    announcer: announce::Announcer,
}

enum Happening {
    Message(Option<Message>),
    Reply(Input),
    Watch(WatchEvent),
    Tick,
}

impl Driver {
    fn new(plan: Plan, events: broadcast::Sender<Event>) -> Self {
        let engine = Engine::new(
            plan.candidate.clone(),
            plan.timing,
            plan.store.traits().batch_max,
            plan.seed,
        );
        let announcer = announce::Announcer::new(&plan.candidate);
        Self {
            plan,
            engine,
            timer: BootTimer::new(),
            wake: None,
            requests: JoinSet::new(),
            watch: None,
            waiting: None,
            term: None,
            departing: Vec::new(),
            closing: false,
            closed: None,
            stuck: false,
            unseen: false,
            abandoned: false,
            events,
            announcer,
        }
    }

    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        loop {
            match self.next(&mut messages).await {
                Happening::Message(Some(message)) => self.message(message),
                // Every handle is gone without a word: leave as if told to.
                Happening::Message(None) => {
                    self.abandoned = true;
                    self.leave();
                }
                Happening::Reply(input) => self.step(input),
                Happening::Watch(event) => self.step(Input::Watch(event)),
                Happening::Tick => self.step(Input::Tick),
            }
            if self.engine.is_idle() && (self.closing || self.abandoned) {
                // Before the answer: the process may end with it.
                self.plan.recorder = None;
                if let Some(closed) = self.closed.take() {
                    let _ = closed.send(());
                }
                return;
            }
        }
    }

    async fn next(&mut self, messages: &mut mpsc::UnboundedReceiver<Message>) -> Happening {
        let wake = self.wake;
        let timer = &self.timer;
        select! {
            biased;
            Some(reply) = self.requests.join_next(), if !self.requests.is_empty() => match reply {
                Ok(Some(input)) => Happening::Reply(input),
                // Given up, or it panicked: the engine knows by its own clock that no answer came.
                Ok(None) | Err(_) => Happening::Tick,
            },
            message = messages.recv(), if !self.abandoned => Happening::Message(message),
            Some(event) = watcher::next(&mut self.watch) => Happening::Watch(event),
            () = async { timer.wait_until(wake.expect("checked")).await }, if wake.is_some() => Happening::Tick,
        }
    }

    fn message(&mut self, message: Message) {
        let name = self.plan.name.clone();
        match message {
            Message::Campaign(waiting) => {
                // A deadline that has passed comes first: whoever was told of the loss may campaign again.
                self.step(Input::Tick);
                if self.waiting.is_some() || self.term.is_some() {
                    let _ = waiting.won.send(Err(NotWon::Busy));
                    return;
                }
                self.waiting = Some(waiting);
                let (note, progress_within) = (self.plan.note.clone(), self.plan.progress_within);
                self.step(Input::Command(Command::Campaign {
                    name,
                    note,
                    progress_within,
                    max_hold: None,
                }));
            }
            Message::Withdraw => {
                // The campaign that is withdrawn may be another than the one that waits, which came after it or
                // kept it out.
                if self
                    .waiting
                    .as_ref()
                    .is_some_and(|waiting| !waiting.won.is_closed())
                {
                    return;
                }
                self.waiting = None;
                self.step(Input::Command(Command::Withdraw { name }));
            }
            Message::StepDown { token } => {
                self.enter(token, &Phase::Ending);
                self.step(Input::Command(Command::StepDown { name, token }));
            }
            Message::WorkEnded { token, departed } => {
                self.departing.extend(departed.map(|departed| (token, departed)));
                if self.term.as_ref().is_none_or(|term| term.token() != token) {
                    // It ended before by itself: there is nothing to release.
                    self.answer_departures(token, &Departure::Unconfirmed(None));
                }
                self.step(Input::Command(Command::WorkEnded { name, token }));
            }
            Message::Progress => {
                // Until a renewal shows that it was enough, further progress is awaited.
                self.await_progress(self.stuck);
                self.step(Input::Tick);
            }
            Message::Close { closed } => {
                self.closing = true;
                self.closed = closed;
                self.leave();
            }
        }
    }

    /// Ends a campaign; a term ends with its [`Leadership`](crate::Leadership), which may outlive us.
    fn leave(&mut self) {
        self.waiting = None;
        self.step(Input::Command(Command::Withdraw {
            name: self.plan.name.clone(),
        }));
    }

    fn enter(&self, token: FencingToken, phase: &Phase) {
        if let Some(term) = &self.term
            && term.token() == token
        {
            term.enter(phase.clone());
        }
    }

    fn step(&mut self, input: Input) {
        // What progress the work has reported since the last step comes first: it may keep the term.
        self.take_in_progress();
        self.apply(input);
    }

    fn take_in_progress(&mut self) {
        if let Some(term) = &self.term {
            let (token, at) = (term.token(), term.last_progress());
            if at > Moment::ZERO {
                let name = self.plan.name.clone();
                self.apply(Input::Command(Command::Progress { name, token, at }));
            }
        }
    }

    fn await_progress(&self, awaited: bool) {
        if let Some(term) = &self.term {
            term.await_progress(awaited);
        }
    }

    fn apply(&mut self, input: Input) {
        let stuck_before = self.stuck;
        let recorded = self.plan.recorder.as_ref().map(|_| input.clone());
        let (at, actions) = self.advance(input);
        if let (Some(recorder), Some(input)) = (&mut self.plan.recorder, recorded) {
            recorder.record(at, &input, &actions);
        }
        self.wake = actions.wake.map(|wake| wake.at);
        for event in actions.events {
            self.announcer.announce(&event);
            self.take_in(&event);
            // Nobody needs to listen.
            let _ = self.events.send(event);
        }
        for request in actions.requests {
            requests::send(&mut self.requests, &self.plan.store, request);
        }
        self.follow(stuck_before);
    }

    /// Does what the events of a step call for, when they have all been told.
    fn follow(&mut self, stuck_before: bool) {
        if self.stuck && !stuck_before {
            // Progress may have been reported just before it was known to be awaited.
            self.take_in_progress();
        }
        if let (true, Some(term)) = (std::mem::take(&mut self.unseen), &self.term) {
            // Not by a message of its handle: the next campaign may be in the queue before that.
            let (name, token) = (self.plan.name.clone(), term.token());
            self.step(Input::Command(Command::WorkEnded { name, token }));
        }
    }

    /// Steps the engine, and publishes what it believes from then on.
    ///
    /// Somebody may see the deadline pass while an answer that came in time is taken in: then it came too late
    /// after all. The step is taken back, and made again at the time it is by then, which ends the term.
    fn advance(&mut self, input: Input) -> (Moment, Actions) {
        let undo = matches!(input, Input::Answer { .. }).then(|| (self.engine.clone(), input.clone()));
        let now = clock::now();
        let actions = self.engine.step(now, input);
        match (self.publish(), undo) {
            (Extension::TooLate, Some((engine, input))) => {
                self.engine = engine;
                let now = clock::now();
                let actions = self.engine.step(now, input);
                // Refused again: its handle has ended the term, and its message is on its way.
                let (Extension::Published | Extension::TooLate) = self.publish();
                (now, actions)
            }
            (Extension::Published | Extension::TooLate, _) => (now, actions),
        }
    }

    fn publish(&self) -> Extension {
        match (&self.term, self.engine.belief(&self.plan.name)) {
            (Some(term), Some(belief)) if belief.token == term.token() => term.extend(&belief),
            (Some(_) | None, _) => Extension::Published,
        }
    }

    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Acquired { grant, .. } => {
                self.won(grant);
                self.watch_on(WATCH_TERM_AFTER);
            }
            Event::CampaignEnded { error, .. } => {
                if let Some(waiting) = self.waiting.take() {
                    let _ = waiting.won.send(Err(NotWon::Store(error.clone())));
                }
            }
            Event::AskedToStepDown { token, .. } => self.enter(*token, &Phase::Ending),
            Event::Stuck { .. } => {
                self.stuck = true;
                self.await_progress(true);
            }
            Event::Renewed { .. } => {
                self.stuck = false;
                self.await_progress(false);
            }
            Event::Ended { token, cause, .. } => {
                self.enter(*token, &Phase::Over(cause.clone()));
                self.term = None;
                self.stuck = false;
                // A term that ended by itself departs no more: whoever waits for that learns it now.
                if !matches!(cause, tenure_core::Cause::GivenBack) {
                    self.answer_departures(*token, &Departure::Unconfirmed(None));
                }
            }
            Event::Departed { token, departure, .. } => self.answer_departures(*token, departure),
            Event::Standby { .. } | Event::AttemptFailed { .. } => self.watch_on(Duration::ZERO),
            Event::Withdrawn { .. }
            | Event::RenewalFailed { .. }
            | Event::Doubted { .. }
            | Event::Reassured { .. } => {}
        }
    }

    fn won(&mut self, grant: &Grant) {
        let Some(belief) = self.engine.belief(&self.plan.name) else {
            return;
        };
        let term = Arc::new(SharedTerm::new(belief));
        self.term = Some(term.clone());
        if let Some(Waiting { won, messages }) = self.waiting.take() {
            // Whoever campaigned may be gone before it looks: then the leadership is dropped unseen, and gives the
            // lease back as it always does.
            let leadership = Leadership::new(self.plan.name.clone(), term, grant.clone(), messages);
            if won.send(Ok(leadership)).is_ok() {
                return;
            }
        }
        self.unseen = true;
    }

    fn answer_departures(&mut self, token: FencingToken, departure: &Departure) {
        for (departing, answer) in std::mem::take(&mut self.departing) {
            if departing == token {
                let _ = answer.send(departure.clone());
            } else {
                self.departing.push((departing, answer));
            }
        }
    }

    /// Watches, from `after` a while on. What happens before the watch is in place is not missed: it begins
    /// with a hint to look again.
    fn watch_on(&mut self, after: Duration) {
        if self.watch.is_none() {
            self.watch = Some(watcher::start(
                &self.plan.store,
                &self.plan.name,
                after,
                self.plan.timing.retry_every(),
            ));
        }
    }
}

impl Drop for Driver {
    /// However the driver ends, by a panic too, nobody may believe in its term longer than its deadline;
    /// nothing renews it any more, so better nobody at all.
    fn drop(&mut self) {
        if let Some(term) = &self.term
            && term.authority() != Authority::None
        {
            term.enter(Phase::Over(tenure_core::Cause::Deadline(None)));
        }
    }
}
