//! `tenure run`: wait, lead, run, give back.

use crate::arguments::{Again, Patience, RunArguments};
use crate::exit::{Code, Failure, of_signal};
use crate::output::{Voice, clean, in_json, short};
use crate::place::{Credentials, Place};
use crate::supervise::{Ending, Job, Meaning, Notice, Signals, Surroundings, Why, adopt_orphans, supervise};
use clap::ArgMatches;
use rustix::process::Signal;
use serde_json::json;
use std::fs::File;
use std::future::Future;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{Fault, Lease, Released};
use tenure::{
    CampaignError, Departure, Election, Event, Leadership, LeaseName, LockError, LockManager,
    LockTimingOptions, SharedStore, StoreError,
};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// How many request time-outs to wait for the release, and for leaving without one: an answer that does not
/// come by then will hardly come, and the lease expires by itself.
const LEAVING_REQUESTS: u32 = 2;

/// Runs the command while this process leads; answers the exit code.
pub(crate) async fn run(
    arguments: RunArguments,
    matches: &ArgMatches,
    store: Option<&str>,
    voice: Voice,
) -> Result<u8, Failure> {
    let again = arguments.again(matches).unwrap_or_else(|error| error.exit());
    let patience = arguments.patience(matches).unwrap_or_else(|error| error.exit());
    let name = LeaseName::new(arguments.given_name(matches)?)?;
    let wishes = Wishes {
        name,
        again,
        patience,
        queue: Queue::None,
    };
    undertake(arguments, wishes, store, voice).await
}

/// What the arguments of a command come to.
pub(super) struct Wishes {
    pub(super) name: LeaseName,
    pub(super) again: Again,
    pub(super) patience: Patience,
    pub(super) queue: Queue,
}

/// Whether there is an order among those who wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    /// Whoever asks first when it is free.
    None,
    /// First come, first served.
    Fair,
}

/// Runs the command while this process leads; answers the exit code.
pub(super) async fn undertake(
    arguments: RunArguments,
    wishes: Wishes,
    store: Option<&str>,
    voice: Voice,
) -> Result<u8, Failure> {
    let Wishes {
        name,
        again,
        patience,
        queue,
    } = wishes;
    let of_lease = |failure: Failure| failure.of_lease(name.as_str());
    let timing = arguments
        .timing
        .timing()
        .map_err(|error| of_lease(error.into()))?;
    // Before anybody campaigns: a command that cannot run must not cost the others their turn.
    let mut job = Job::new(&arguments.command, name.as_str())?;
    let place = Place::find(store)?;
    let mut signals = Signals::take_in()?;
    adopt_orphans();
    let store = match unless_ended(&mut signals, place.open()).await {
        Ok(opened) => opened.map_err(of_lease)?,
        Err(signal) => return Ok(of_signal(signal.as_raw())),
    };
    // Never closed: the last one to close an SQLite file moves its log into it, which costs two flushes of the
    // disk after the job has ended, for nothing. The log is as safe, and the next to open it goes on with it.
    std::mem::forget(store.clone());
    let queue_store = (queue == Queue::Fair).then(|| store.clone());
    let mut builder = Election::builder(&name, store)
        .timing(timing)
        .note(arguments.note);
    if let Some(path) = &arguments.trace {
        builder = builder.trace(created(path)?);
    }
    if let Some(candidate) = &arguments.candidate {
        builder = builder.candidate(candidate);
    }
    let election = builder.build().map_err(|error| of_lease(error.into()))?;
    job.tell("TENURE_CANDIDATE", election.candidate().id.as_str());
    let credentials = if arguments.share_credentials {
        Credentials::Shared
    } else {
        Credentials::Withheld
    };
    job.tell("TENURE_STORE", place.for_command(credentials));
    let queue = queue_store.map(|store| in_queue(store, &election).map_err(of_lease));
    let queue = queue.transpose()?;
    let mut turn = Turn {
        election: &election,
        queue: queue.as_ref(),
        events: election.events(),
        job: &job,
        signals,
        voice,
        patience,
        conflict_code: arguments.conflict_exit_code,
    };
    let outcome = loop {
        match turn.take().await {
            Ok(Taken::Done(code)) => break Ok(code),
            Ok(Taken::Lost) if again == Again::Once => break Ok(Code::Lost.number()),
            Ok(Taken::Lost) => {}
            Ok(Taken::HandedOver) if again == Again::Once => break Ok(Code::Lost.number()),
            // Whoever asked wants another to lead: it gets a renewal interval's start.
            Ok(Taken::HandedOver) => {
                let pause = tokio::time::sleep(timing.renew_every());
                if let Err(signal) = unless_ended(&mut turn.signals, pause).await {
                    break Ok(of_signal(signal.as_raw()));
                }
            }
            // It would be renewed for as long as this process lives, and released when it is dropped.
            Ok(Taken::Kept(failure)) => {
                std::mem::forget(election);
                return Err(failure);
            }
            Err(failure) => break Err(failure),
        }
    };
    drop(turn);
    if let Some(queue) = queue {
        let patience = timing.request_timeout() * LEAVING_REQUESTS;
        let _ = tokio::time::timeout(patience, queue.close()).await;
    }
    let patience = timing.request_timeout() * LEAVING_REQUESTS;
    // What it may hold unknown to it expires by itself if the store does not answer.
    let _ = tokio::time::timeout(patience, election.close()).await;
    outcome
}

/// What waits in the queue of an election's lease, under the same name.
fn in_queue(store: SharedStore, election: &Election) -> Result<LockManager, Failure> {
    let ttl = election.timing().ttl().duration();
    let timing = LockTimingOptions::new(ttl).check()?;
    let queue = LockManager::builder(store)
        .candidate(election.candidate().id.as_str())
        .timing(timing)
        .build()?;
    Ok(queue)
}

/// The file of a new trace.
///
/// # Errors
/// It is there already, or cannot be made. Nothing was started.
fn created(path: &Path) -> Result<File, Failure> {
    tenure::trace::create(path).map_err(|error| {
        let way_out = if error.kind() == ErrorKind::AlreadyExists {
            "a trace is never overwritten; name a new file, such as one with $$ in its name"
        } else {
            "name a file in a folder that you may write to"
        };
        let shown = clean(&path.to_string_lossy());
        Failure::new(
            Code::Configuration,
            format!("--trace \"{shown}\": {error}; {way_out}"),
        )
    })
}

/// What a turn came to.
enum Taken {
    /// This is the exit code.
    Done(u8),
    /// The term was lost, and the command ended.
    Lost,
    /// The term was given up because somebody asked for it.
    HandedOver,
    /// The command could not be ended: the lease is not given back.
    Kept(Failure),
}

/// What waiting came to.
enum Waited {
    Won(Leadership),
    /// This is the exit code.
    Ended(u8),
}

struct Turn<'a> {
    election: &'a Election,
    /// Where this process waits for its turn, if there is an order.
    queue: Option<&'a LockManager>,
    events: broadcast::Receiver<Event>,
    job: &'a Job,
    signals: Signals,
    voice: Voice,
    patience: Patience,
    conflict_code: u8,
}

impl Turn<'_> {
    /// Waits for one term, and runs the command in it.
    async fn take(&mut self) -> Result<Taken, Failure> {
        let leadership = match self.wait().await? {
            Waited::Won(leadership) => Arc::new(leadership),
            Waited::Ended(code) => return Ok(Taken::Done(code)),
        };
        let surroundings = Surroundings {
            job: self.job,
            timing: *self.election.timing(),
            signals: &mut self.signals,
            events: &mut self.events,
            voice: self.voice,
        };
        let ending = supervise(&leadership, surroundings).await;
        let Ok(leadership) = Arc::try_unwrap(leadership) else {
            unreachable!("supervision keeps nothing of a term once it is over");
        };
        let (name, token) = (leadership.name().clone(), leadership.token());
        if ending == Ok(Ending::Unkillable) {
            std::mem::forget(leadership);
            return Ok(Taken::Kept(Failure::new(
                Code::Lost,
                format!(
                    "lease \"{name}\": a part of {} cannot be killed, so term {token} is not given back; it expires \
                     by itself within {}; look for state D in: ps -eo pid,pgid,stat,cmd",
                    self.job.shown(),
                    self.election.timing().ttl()
                ),
            )));
        }
        self.give_back(leadership).await;
        let (why, taken) = match ending? {
            Ending::ByItself(status) => return Ok(Taken::Done(code_of(status))),
            Ending::Ended(Why::Asked) => ("asked to step down".to_owned(), Taken::HandedOver),
            Ending::Ended(Why::Lost(why)) => (why, Taken::Lost),
            Ending::Unkillable => unreachable!("answered above"),
        };
        let text = format!(
            "lease \"{name}\": term {token} has ended, and {} with it: {why}",
            self.job.shown()
        );
        let fields = json!({"lease": name.as_str(), "token": token.number()});
        self.voice.say("ended", &text, fields);
        Ok(taken)
    }

    /// Gives the lease back, unless the store does not answer: then it expires by itself.
    async fn give_back(&self, leadership: Leadership) {
        let name = leadership.name().clone();
        let timing = self.election.timing();
        let patience = timing.request_timeout() * LEAVING_REQUESTS;
        let departure = tokio::time::timeout(patience, leadership.step_down()).await;
        let why = match departure {
            Ok(
                Departure::Answered(Released::Vacated | Released::NotYours(_)) | Departure::Unconfirmed(None),
            ) => return,
            Ok(Departure::Unconfirmed(Some(error))) => error.to_string(),
            Err(_) => format!("no answer within {}", short(patience)),
        };
        let text = format!(
            "lease \"{name}\": could not be given back ({why}); it expires by itself within {}",
            timing.ttl()
        );
        self.voice
            .say("not_given_back", &text, json!({"lease": name.as_str()}));
    }

    async fn wait(&mut self) -> Result<Waited, Failure> {
        let began = Instant::now();
        let name = self.election.name().clone();
        let (election, queue) = (self.election, self.queue);
        let mut campaign = pin!(async {
            let place = match queue {
                Some(queue) => Some(
                    queue
                        .turn(&name)
                        .await
                        .map_err(|error| out_of_turn(error, &name))?,
                ),
                None => None,
            };
            let won = election.campaign().await.map_err(|error| failed(error, &name));
            // The next moves up, and waits for this one.
            drop(place);
            won
        });
        let deadline = match self.patience {
            Patience::Limited(wait) => began.checked_add(wait),
            Patience::Endless | Patience::OneAttempt => None,
        };
        let mut story = Story::default();
        let mut has_events = true;
        loop {
            tokio::select! {
                biased;
                outcome = &mut campaign => {
                    let leadership = outcome?;
                    story.won(&leadership, began.elapsed(), self.voice);
                    return Ok(Waited::Won(leadership));
                }
                event = self.events.recv(), if has_events => match event {
                    Ok(event) => {
                        let obstacle = story.take_in(event, self.patience, self.voice);
                        if let (Some(obstacle), Patience::OneAttempt) = (obstacle, self.patience) {
                            return self.give_up(obstacle, None);
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => has_events = false,
                },
                () = tokio::time::sleep_until(deadline.unwrap_or(began)), if deadline.is_some() => {
                    let obstacle = story.obstacle.unwrap_or_else(|| match self.queue {
                        Some(_) => Obstacle::Queue,
                        None => Obstacle::Store(StoreError::not_applied(
                            Fault::TimedOut,
                            format!("lease \"{name}\": the store has not answered yet; is it reachable?"),
                        )),
                    });
                    return self.give_up(&obstacle, Some(began.elapsed()));
                }
                notice = self.signals.next() => {
                    if let Notice::Signal(signal, Meaning::End | Meaning::HangUp) = notice {
                        return Ok(Waited::Ended(of_signal(signal.as_raw())));
                    }
                }
            }
        }
    }

    /// The end of the patience.
    fn give_up(&self, obstacle: &Obstacle, waited: Option<Duration>) -> Result<Waited, Failure> {
        let suffix = waited.map_or(String::new(), |waited| {
            format!("; gave up after {}", short(waited))
        });
        match obstacle {
            Obstacle::Store(error) => {
                let failure = Failure::from(error.clone()).of_lease(self.election.name().as_str());
                Err(Failure {
                    message: failure.message + &suffix,
                    ..failure
                })
            }
            Obstacle::Queue => Err(Failure {
                code: self.conflict_code,
                message: format!(
                    "lease \"{}\": its turn in the queue has not come{suffix}",
                    self.election.name()
                ),
            }),
            // Silence: this is how a line in the crontab of three hosts ends on two of them.
            Obstacle::Held(_) if waited.is_none() => Ok(Waited::Ended(self.conflict_code)),
            Obstacle::Held(lease) => Err(Failure {
                code: self.conflict_code,
                message: format!(
                    "lease \"{}\": held by {}, token {}{suffix}",
                    lease.name, lease.holder, lease.token
                ),
            }),
        }
    }
}

/// What stands between this candidate and the lease.
enum Obstacle {
    Held(Box<Lease>),
    /// Others came before.
    Queue,
    Store(StoreError),
}

/// What was seen while waiting.
#[derive(Default)]
struct Story {
    obstacle: Option<Obstacle>,
    told: bool,
}

impl Story {
    fn take_in(&mut self, event: Event, patience: Patience, voice: Voice) -> Option<&Obstacle> {
        let obstacle = match event {
            Event::Standby { lease, twin } => {
                if patience != Patience::OneAttempt {
                    self.told = true;
                    say_standby(&lease, twin, voice);
                }
                Obstacle::Held(Box::new(lease))
            }
            Event::AttemptFailed {
                name,
                error,
                retry_in,
            } => {
                let known =
                    matches!(&self.obstacle, Some(Obstacle::Store(last)) if last.fault == error.fault);
                // Once per kind of failure: the tries go on as long as it takes.
                if !known && patience != Patience::OneAttempt {
                    self.told = true;
                    let text = format!("{error}; trying on, next in {}", short(retry_in));
                    let fields = json!({"lease": name.as_str(), "retry_in_ms": in_json(retry_in)});
                    voice.say("attempt_failed", &text, fields);
                }
                Obstacle::Store(error)
            }
            Event::CampaignEnded { .. }
            | Event::Withdrawn { .. }
            | Event::Acquired { .. }
            | Event::Renewed { .. }
            | Event::RenewalFailed { .. }
            | Event::Doubted { .. }
            | Event::Reassured { .. }
            | Event::Stuck { .. }
            | Event::AskedToStepDown { .. }
            | Event::Ended { .. }
            | Event::Departed { .. } => return None,
        };
        self.obstacle = Some(obstacle);
        self.obstacle.as_ref()
    }

    /// Says that the waiting is over, if anything was said of it.
    fn won(&self, leadership: &Leadership, waited: Duration, voice: Voice) {
        if !self.told {
            return;
        }
        let (name, token) = (leadership.name(), leadership.token());
        let text = format!("lease \"{name}\": elected after {}, token {token}", short(waited));
        let fields = json!({"lease": name.as_str(), "token": token.number(), "waited_ms": in_json(waited)});
        voice.say("elected", &text, fields);
    }
}

fn say_standby(lease: &Lease, twin: bool, voice: Voice) {
    let twin = if twin {
        "; it has this candidate's id: give each its own --candidate"
    } else {
        ""
    };
    let note = match lease.note.as_str() {
        "" => String::new(),
        note => format!(" ({})", clean(note)),
    };
    let text = format!(
        "lease \"{}\": waiting; held by {}{note}, token {}{twin}",
        lease.name, lease.holder, lease.token
    );
    let fields = json!({
        "lease": lease.name.as_str(),
        "holder": lease.holder.id.as_str(),
        "token": lease.token.number(),
        "remaining_ms": in_json(lease.remaining),
    });
    voice.say("standby", &text, fields);
}

fn out_of_turn(error: LockError, name: &LeaseName) -> Failure {
    match error {
        LockError::Store(error) => Failure::from(error).of_lease(name.as_str()),
        error => Failure::new(Code::Configuration, error.to_string()),
    }
}

fn failed(error: CampaignError, name: &LeaseName) -> Failure {
    Failure::from(error).of_lease(name.as_str())
}

/// The code of a command that ended: its own, or 128 and the number of the signal that ended it.
fn code_of(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => of_signal(signal),
        (None, None) => Code::Internal.number(),
    }
}

/// Does `work`, unless a signal asks for the end first.
async fn unless_ended<T>(signals: &mut Signals, work: impl Future<Output = T>) -> Result<T, Signal> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => return Ok(outcome),
            notice = signals.next() => {
                if let Notice::Signal(signal, Meaning::End | Meaning::HangUp) = notice {
                    return Err(signal);
                }
            }
        }
    }
}
