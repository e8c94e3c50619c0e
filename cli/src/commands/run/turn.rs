//! One turn: waiting for a term, running the command in it, giving it back.

use super::chronicle::{Chronicle, Entry};
use super::giving_back::NotGivenBack;
use super::opening::Waiting;
use super::order;
use super::waiting::Waited;
use crate::arguments::{Again, Patience};
use crate::commands::ends::{code_of, kept_in_words, told};
use crate::endpoint::{Board, Left};
use crate::exit::{Code, Failure, of_signal};
use crate::manager;
use crate::output::{Voice, in_json, short};
use crate::recording::{Spans, TermSpan};
use crate::supervise::{
    EndedByFault, Ending, Hooks, Job, Signals, Surroundings, WHERE_IT_IS, Why, Work, supervise,
};
use rustix::process::Signal;
use serde_json::json;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tenure::tooling::TermEnd;
use tenure::{Election, Event, FencingToken, Leadership, LeaseName, LockManager, Priority, SharedStore};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::Instant;

/// What a turn came to.
pub(super) enum Taken {
    /// This is the exit code.
    Done(u8),
    /// The command has ended by itself after this time, with this exit code.
    Finished(u8, Duration),
    /// A signal to this process has ended the command, with this exit code, or kept it from beginning.
    Signalled(u8),
    /// The command was not well, and was ended after this time.
    Unwell(Duration),
    /// The command could not be started, for this; the term has lasted for this time.
    NotStarted(Failure, Duration),
    /// The term was lost, and the command ended.
    Lost,
    /// The term was given up because somebody asked for it.
    HandedOver,
    /// The command could not be ended: the lease is not given back.
    Kept(Failure),
}

impl Taken {
    /// The same, where `signal` has asked for the end and no turn follows: with the code of a command that
    /// has ended by itself or on the signal, else as a lost term. With `--keep`, which has no code for that,
    /// with the signal's: whoever has stopped it sees no failure, whatever its command makes of a signal.
    ///
    /// # Errors
    /// Those of a command that could not be started.
    pub(super) fn ended_by(self, again: Again, signal: Signal) -> Result<Self, Failure> {
        let ended = match self {
            Self::Finished(code, _) => Self::Done(code),
            Self::Signalled(0) => Self::Done(0),
            Self::Signalled(_) | Self::Unwell(_) | Self::NotStarted(..) | Self::Lost | Self::HandedOver
                if again == Again::Keep =>
            {
                Self::Done(of_signal(signal.as_raw()))
            }
            Self::Signalled(code) => Self::Done(code),
            Self::Unwell(_) => Self::Done(Code::Lost.number()),
            Self::NotStarted(failure, _) => return Err(failure),
            Self::Done(_) | Self::Lost | Self::HandedOver | Self::Kept(_) => self,
        };
        Ok(ended)
    }
}

pub(super) struct Turn<'a> {
    pub(super) election: &'a Election,
    /// What of the first turn has passed already: the store was waited for.
    pub(super) before: Option<Waiting>,
    /// Where this process waits for its turn, if there is an order.
    pub(super) queue: Option<&'a LockManager>,
    /// Where it looks who is before it, and what is so when it has waited in vain.
    pub(super) store: SharedStore,
    /// By which it waits, if there is an order.
    pub(super) priority: Option<Priority>,
    /// Whether it looks first whether those before it live, as the store does not tell one attempt.
    pub(super) looks_for_life: bool,
    /// Who hears of its terms.
    pub(super) hooks: Hooks,
    /// Where its terms are noted, if they are.
    pub(super) chronicle: Option<Chronicle>,
    /// What makes a span of each, if anybody is told of them.
    pub(super) spans: Option<Spans>,
    /// Whether a term is left to whoever has a higher priority, before anybody asks.
    pub(super) yields: bool,
    pub(super) events: broadcast::Receiver<Event>,
    pub(super) board: &'a Board,
    pub(super) job: &'a Job,
    pub(super) signals: Signals,
    pub(super) voice: Voice,
    pub(super) patience: Patience,
    /// How long the lease is kept when the command has ended by itself.
    pub(super) linger: Option<Duration>,
    pub(super) conflict_code: u8,
}

impl Turn<'_> {
    /// Waits for one term, and runs the command in it.
    pub(super) async fn take(&mut self) -> Result<Taken, Failure> {
        let leadership = match self.wait().await? {
            Waited::Won(leadership) => Arc::new(leadership),
            Waited::Ended(code) => return Ok(Taken::Done(code)),
        };
        let candidate = self.election.candidate().id.as_str();
        let begin = |spans: &Spans| spans.begin(self.election.name(), candidate, leadership.token());
        let span = self.spans.as_ref().map(begin);
        let surroundings = Surroundings {
            job: self.job,
            span: span.as_ref(),
            timing: *self.election.timing(),
            signals: &mut self.signals,
            events: &mut self.events,
            voice: self.voice,
        };
        let began = Instant::now();
        manager::status(&format!("leads by token {}", leadership.token()));
        self.board.begins(leadership.token(), leadership.until());
        let (election, token) = (self.election, leadership.token());
        let mut environment = self.job.environment_of(token);
        let of_span = span.iter().flat_map(TermSpan::environment);
        environment.extend(of_span.map(|(variable, value)| (variable, value.into())));
        self.hooks.elected(environment.clone());
        let mut noted = self
            .chronicle
            .as_ref()
            .map(|chronicle| chronicle.begin(election, token));
        let yields = async {
            if let Some(priority) = self.priority.filter(|_| self.yields) {
                order::yield_to_higher(&self.store, election, token, priority).await;
            }
            std::future::pending::<()>().await;
        };
        let mut supervised = {
            let _ended_before_the_term = EndedByFault;
            tokio::select! {
                biased;
                supervised = supervise(&leadership, surroundings) => supervised,
                () = yields => unreachable!("it waits for the end of the term"),
            }
        };
        self.board.ends(match supervised {
            Ok((Ending::Unkillable, _)) => Left::Some,
            Ok(_) | Err(_) => Left::Nothing,
        });
        let Ok(leadership) = Arc::try_unwrap(leadership) else {
            unreachable!("supervision keeps nothing of a term once it is over");
        };
        let (name, token) = (leadership.name().clone(), leadership.token());
        let (how, code, left) = told(supervised.as_ref().ok().map(|(ending, _)| ending));
        let as_wished = matches!(
            supervised,
            Ok((
                Ending::ByItself(..) | Ending::OnSignal(_) | Ending::NotBegun(_) | Ending::Ended(Why::Asked),
                _
            ))
        );
        let led = began.elapsed();
        if let (Some(linger), Ok((Ending::ByItself(status, left), work))) = (self.linger, &mut supervised) {
            // It guards nothing any more, hears of no renewal from here on, and would give the lease back
            // early: when this process is killed, or is stopped for a moment. The next term, also with
            // `--keep`, has a warden of its own.
            dismiss(work.take()).await;
            // At once: who asks meanwhile how the night went is not to be told that it goes on.
            let how = kept_in_words(*status, *left, linger);
            let end = TermEnd::new(led, how)
                .exit_code(Some(code_of(*status)))
                .left(Some(*left));
            self.note_end(noted.take(), &end).await;
            self.lingers(&name, token, *status, linger);
            self.linger(&leadership, linger).await;
        }
        let (ending, kept) = if let Ok((Ending::Unkillable, work)) = supervised {
            // The warden goes on trying, and gives the lease back when it has come through.
            drop(work);
            std::mem::forget(leadership);
            (Ok(Ending::Unkillable), None)
        } else {
            self.part_with(leadership, supervised, span.as_ref()).await
        };
        let how = kept.map_or(how.clone(), |kept| kept.beside(&how));
        self.hooks.lost(environment, how.clone());
        if let Some(span) = span {
            // Work that ends within the moment of its doubt is gone before this has been told of it.
            while let Some(event) = self.told() {
                span.note(&event);
            }
            span.end(&how, !as_wished);
        }
        self.note_end(noted, &TermEnd::new(led, how).exit_code(code).left(left))
            .await;
        Ok(self.taken(ending, led, &name, token))
    }

    /// Notes how the term has ended, if that was not done before.
    async fn note_end(&self, noted: Option<Entry>, end: &TermEnd) {
        if let (Some(chronicle), Some(noted)) = (&self.chronicle, noted) {
            chronicle.end(noted, end).await;
        }
    }

    /// Says how the command has ended, and that nobody else gets the lease yet. Also where only errors are to
    /// be said, if it failed.
    fn lingers(&self, name: &LeaseName, token: FencingToken, status: ExitStatus, time: Duration) {
        let text = format!(
            "lease \"{name}\": {} ended with {status}; the lease is kept for {} (tenure step-down {name} ends that)",
            self.job.shown(),
            short(time)
        );
        let fields = json!({
            "lease": name.as_str(), "token": token.number(), "code": code_of(status), "for_ms": in_json(time)
        });
        match status.success() {
            true => self.voice.say("lingering", &text, fields),
            false => self.voice.warn("lingering", &text, fields),
        }
    }

    /// Keeps what nothing of the work needs any more from others for a while; not where a signal or
    /// somebody's wish asks for it, nor where it is lost anyway.
    async fn linger(&mut self, leadership: &Leadership, time: Duration) {
        manager::status(&format!("keeps the lease for {}", short(time)));
        tokio::select! {
            biased;
            () = self.signals.end_of_keeping() => {}
            () = leadership.interrupted() => {}
            () = tokio::time::sleep(time) => {}
        }
    }

    /// Gives back what nothing of the work needs any more, and then parts with the work's warden, if it was
    /// not dismissed before.
    async fn part_with(
        &mut self,
        leadership: Leadership,
        supervised: Result<(Ending, Option<Work>), Failure>,
        span: Option<&TermSpan>,
    ) -> (Result<Ending, Failure>, Option<NotGivenBack>) {
        let kept = self.give_back(leadership, span).await;
        let ending = match supervised {
            Ok((ending, work)) => {
                dismiss(work).await;
                Ok(ending)
            }
            Err(failure) => Err(failure),
        };
        if let Some(kept) = &kept {
            kept.say(self.voice);
        }
        (ending, kept)
    }

    /// What has happened in the election, and was not taken in yet.
    pub(super) fn told(&mut self) -> Option<Event> {
        loop {
            match self.events.try_recv() {
                Ok(event) => return Some(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// What the ending of a term's command means for this turn. Says it, unless the command ended by itself.
    fn taken(
        &self,
        ending: Result<Ending, Failure>,
        led: Duration,
        name: &LeaseName,
        token: FencingToken,
    ) -> Taken {
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return Taken::NotStarted(failure, led),
        };
        let (why, taken) = match ending {
            Ending::ByItself(status, _) => return Taken::Finished(code_of(status), led),
            Ending::OnSignal(status) => return Taken::Signalled(code_of(status)),
            Ending::NotBegun(signal) => return Taken::Signalled(of_signal(signal.as_raw())),
            Ending::Ended(Why::Unwell(why)) => (why, Taken::Unwell(led)),
            Ending::Ended(Why::Asked) => ("asked to step down".to_owned(), Taken::HandedOver),
            Ending::Ended(Why::Lost(why)) => (why, Taken::Lost),
            Ending::Unkillable => return Taken::Kept(self.not_given_back(name, token)),
        };
        let text = format!(
            "lease \"{name}\": term {token} has ended, and {} with it: {why}",
            self.job.shown()
        );
        let fields = json!({"lease": name.as_str(), "token": token.number()});
        match taken {
            Taken::Lost | Taken::Unwell(_) => self.voice.warn("ended", &text, fields),
            _ => self.voice.say("ended", &text, fields),
        }
        taken
    }

    /// Says why the command could not be started: the run goes on.
    pub(super) fn say_not_started(&self, failure: &Failure) {
        let fields = json!({"lease": self.election.name().as_str(), "code": failure.code});
        self.voice.warn("not_started", &failure.message, fields);
    }

    fn not_given_back(&self, name: &LeaseName, token: FencingToken) -> Failure {
        Failure::new(
            Code::Lost,
            format!(
                "lease \"{name}\": a part of {} cannot be killed, so term {token} is not given back; it expires by \
                 itself within {}; {WHERE_IT_IS}",
                self.job.shown(),
                self.election.timing().ttl()
            ),
        )
    }

    /// Stays out for a while, so that another gets to try. The exit code, if a signal asks for the end
    /// meanwhile.
    pub(super) async fn stay_out(&mut self, what: &str, out: Duration) -> Result<(), u8> {
        let name = self.election.name();
        let text = format!("lease \"{name}\": {what}; campaigning again in {}", short(out));
        let fields = json!({"lease": name.as_str(), "again_in_ms": in_json(out)});
        self.voice.say("cooldown", &text, fields);
        self.signals
            .unless_ended(tokio::time::sleep(out))
            .await
            .map_err(|signal| of_signal(signal.as_raw()))
    }
}

/// Parts with the warden of work of which nothing is left, if there is one.
async fn dismiss(work: Option<Work>) {
    if let Some(work) = work {
        work.dismiss().await;
    }
}
