//! Running a command for one term: it must be gone, with all it started, before the term's deadline.
//!
//! The order is: doubt → SIGTERM → grace → SIGKILL a margin before the deadline → nothing is left of the work
//! → the lease is given back. None of it depends on the election's thread: a term says by itself when it is
//! in doubt and when it is over, and [`deadline`] has the work killed even if this thread is held up. The
//! command itself runs below a [warden](crate::warden), which does the same if all of this process is held
//! up, or dead.

mod deadline;
mod ending;
mod fault;
mod health;
mod heartbeat;
mod hooks;
mod job;
mod leftovers;
mod renewals;
mod shell;
mod signals;
mod spared;
pub(crate) mod system;
mod terminal;
mod work;

pub(crate) use deadline::kill_margin;
pub(crate) use ending::{Ending, Why};
pub(crate) use fault::EndedByFault;
pub(crate) use health::{Health, Page, Probe};
pub(crate) use heartbeat::Heartbeat;
pub(crate) use hooks::{HookCommands, Hooks};
pub(crate) use job::Job;
pub(crate) use leftovers::in_words as processes_in_words;
pub(crate) use signals::{Signals, ignored_at_start};
pub(crate) use spared::spare_children;
pub(crate) use system::{ClockCorrection, clock_correction};
pub(crate) use work::{Work, adopt_orphans};

use crate::exit::Failure;
use crate::output::{Voice, in_json, short};
use crate::recording::TermSpan;
use deadline::Deadline;
use ending::End;
use job::WON_TOO_LATE;
use leftovers::Leftovers;
use renewals::Renewals;
use rustix::process::Signal;
use serde_json::json;
use signals::{Meaning, Notice};
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tenure::{Authority, Event, Leadership, Timing};
use terminal::{Stopped, Terminal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

/// How long a warden may take to say that nothing is left of what was killed, before it is taken for frozen.
const WARDEN_TIME_MAX: Duration = Duration::from_secs(1);

/// How long work that got SIGKILL may take to be gone: the kernel kills at once, but for a process that
/// sleeps in it uninterruptibly, on a dead network file system for one.
const UNKILLABLE_AFTER: Duration = Duration::from_secs(10);

/// Where to find what cannot be killed.
pub(crate) const WHERE_IT_IS: &str =
    "look for state D, or for another user, in: ps -eo pid,pgid,user,stat,cmd";

/// Pauses between looks at what a dead warden has left.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(1);
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(20);

/// What supervision needs of its surroundings.
pub(crate) struct Surroundings<'a> {
    /// The command.
    pub(crate) job: &'a Job,
    /// The span of the term, if anybody is told of it.
    pub(crate) span: Option<&'a TermSpan>,
    /// The timing of the term.
    pub(crate) timing: Timing,
    /// Signals to this process.
    pub(crate) signals: &'a mut Signals,
    /// What happens in the election.
    pub(crate) events: &'a mut broadcast::Receiver<Event>,
    /// Where to say something.
    pub(crate) voice: Voice,
}

/// Runs the command for this term until all of it is gone. The work that comes with the ending is to be
/// [dismissed](Work::dismiss) when the lease was given back: if this process dies before, its warden does it.
///
/// # Errors
/// It could not be started, or not be watched: nothing runs.
pub(crate) async fn supervise(
    leadership: &Arc<Leadership>,
    surroundings: Surroundings<'_>,
) -> Result<(Ending, Option<Work>), Failure> {
    if !holds(leadership) {
        return Ok((Ending::Ended(Why::Unwell(WON_TOO_LATE.to_owned())), None));
    }
    let (job, timing) = (surroundings.job, surroundings.timing);
    let (span, margin) = (surroundings.span, kill_margin(&timing));
    let started = job.start(leadership, span, margin, &mut *surroundings.signals);
    let (mut work, started) = started.await?;
    // As the term ends whose work does not begin, instead.
    let watched = match started {
        Ok(()) => Deadline::arm(Arc::clone(leadership), work.orders(), &timing).map_err(Err),
        Err(why) => Err(job.not_started(why)),
    };
    if watched.is_err() {
        work.kill_warden();
    }
    let terminal = Terminal::of(&work);
    let watch = Watch {
        leadership,
        work: &mut work,
        grace: timing.grace(),
        terminal,
        ended: None,
        leader_has_ended: false,
        kill_at: None,
        replace_at: None,
        give_up_at: None,
        outlives: false,
        renewals: Renewals::default(),
    };
    let ending = watch.until_gone(surroundings).await;
    match watched {
        Err(instead) if ending != Ending::Unkillable => Ok((instead?.unwrap_or(ending), Some(work))),
        Ok(_) | Err(_) => Ok((ending, Some(work))),
    }
}

fn holds(leadership: &Leadership) -> bool {
    matches!(leadership.authority(), Authority::Held { .. })
}

struct Watch<'a> {
    leadership: &'a Leadership,
    work: &'a mut Work,
    grace: Duration,
    terminal: Terminal,
    /// Why the group was told to end, once it was; nothing takes that back.
    ended: Option<End>,
    leader_has_ended: bool,
    kill_at: Option<Instant>,
    /// When the warden is taken for frozen.
    replace_at: Option<Instant>,
    give_up_at: Option<Instant>,
    /// Whether a part of the work was said to be one that cannot be killed.
    outlives: bool,
    renewals: Renewals,
}

impl Watch<'_> {
    async fn until_gone(mut self, surroundings: Surroundings<'_>) -> Ending {
        let Surroundings {
            job,
            signals,
            events,
            voice,
            span,
            ..
        } = surroundings;
        let leadership = self.leadership;
        let mut lost = pin!(leadership.lost());
        let mut unwell = pin!(job.unwell(leadership.token()));
        let mut doubted = pin!(leadership.doubted());
        let (mut is_lost, mut has_events) = (false, true);
        let mut pause = LOOK_PAUSE_MIN;
        loop {
            let remains = self.work.remains();
            self.wake_or_end(remains.stopped);
            if self.work.is_orphaned() {
                // No fault of the store's: this host would have the next term at once, and the next end of
                // it.
                self.because(Why::Unwell(
                    "the warden of the command has died, or was frozen".to_owned(),
                ));
                self.give_up_at
                    .get_or_insert_with(|| Instant::now() + UNKILLABLE_AFTER);
            }
            if let Some(status) = remains.leader {
                let left = self.leader_ended(status, remains.empty, signals);
                left.say(leadership, &job.shown(), status, voice);
            }
            if remains.empty {
                return Ending::of(self.ended.as_ref(), remains.leader);
            }
            tokio::select! {
                biased;
                loss = &mut lost, if !is_lost => {
                    is_lost = true;
                    if self.outlives {
                        return Ending::Unkillable;
                    }
                    self.kill();
                    self.because(Why::Lost(self.renewals.explain(&loss.cause.to_string())));
                }
                () = &mut doubted, if self.ended.is_none() => match leadership.authority() {
                    // A renewal came just in time.
                    Authority::Held { .. } => doubted.set(leadership.doubted()),
                    Authority::Doubtful { .. } | Authority::Ending { .. } => {
                        self.terminate();
                        self.doubt(&job.shown(), voice);
                    }
                    Authority::None => self.over().await,
                },
                () = sleep_until(self.kill_at.unwrap_or_else(Instant::now)), if self.kill_at.is_some() => {
                    self.kill();
                }
                // What it has said comes before what it is taken for, if it was seen: it may be this process
                // that was held up.
                () = self.work.heard() => {}
                () = sleep_until(self.replace_at.unwrap_or_else(Instant::now)), if self.replace_at.is_some() => {
                    self.replace_at = None;
                    self.work.kill_warden();
                }
                () = sleep_until(self.give_up_at.unwrap_or_else(Instant::now)), if self.give_up_at.is_some() => {
                    if is_lost {
                        return Ending::Unkillable;
                    }
                    self.give_up_at = None;
                    self.outlive(&job.shown(), voice);
                }
                () = self.terminal.wake_again() => {}
                why = &mut unwell, if self.ended.is_none() => {
                    self.terminate();
                    self.because(Why::Unwell(why));
                }
                notice = signals.next() => {
                    if self.outlives && matches!(notice, Notice::Signal(_, Meaning::End)) {
                        return Ending::Unkillable;
                    }
                    self.notice(notice);
                }
                event = events.recv(), if has_events => match event {
                    Ok(event) => self.take_in(&event, span, voice),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => has_events = false,
                },
                () = tokio::time::sleep(pause), if self.work.is_orphaned() => {
                    pause = (pause * 2).min(LOOK_PAUSE_MAX);
                }
            }
        }
    }

    /// It was no doubt: the term is over, and whoever waits for that is only woken a moment later.
    async fn over(&mut self) {
        self.kill();
        // It says at once that it is over, and why as soon as that is known, within milliseconds.
        let loss = self.leadership.lost().await;
        self.because(Why::Lost(self.renewals.explain(&loss.cause.to_string())));
    }

    fn take_in(&mut self, event: &Event, span: Option<&TermSpan>, voice: Voice) {
        if let Some(span) = span {
            span.note(event);
        }
        self.renewals.take_in(event, voice);
        if matches!(event, Event::Renewed { .. }) {
            self.work.wake_warden();
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Child => self.work.reap_others(),
            Notice::Stop(signal) => self.terminal.group_stopped(signal),
            Notice::Signal(signal, Meaning::End) => {
                if signal == Signal::TERM {
                    self.work.terminate();
                } else {
                    // As from a terminal: for the command's group. Who is beside it hears of the end when the
                    // command has ended.
                    self.work.signal(signal);
                    // A stopped member could not take it in.
                    self.work.signal(Signal::CONT);
                }
                if self.ended.is_none() {
                    self.ended = Some(End::Signal);
                }
                self.limit();
            }
            Notice::Signal(signal, Meaning::HangUp | Meaning::Nothing) => self.work.signal(signal),
        }
    }

    /// Sees to a command that was stopped by this signal. One that goes on already asks for nothing, and may
    /// have passed on the terminal that it was lent meanwhile: the word of it was late.
    fn wake_or_end(&mut self, stopped_by: Option<Signal>) {
        let stopped_by = stopped_by.filter(|_| self.work.is_stopped());
        match stopped_by.map(|signal| self.terminal.command_stopped(signal)) {
            Some(Stopped::GoesOn) => self.work.signal(Signal::CONT),
            Some(Stopped::Refused(why)) if self.ended.is_none() => {
                self.terminate();
                self.because(Why::Unwell(why.to_owned()));
            }
            Some(Stopped::Refused(_) | Stopped::Stays) | None => {}
        }
    }

    /// Takes in that the command has ended, and asks the rest to. Answers what it has left of its own accord.
    fn leader_ended(&mut self, status: ExitStatus, empty: bool, signals: &mut Signals) -> Leftovers {
        if let Some(signal) = self.terminal.interrupted(status) {
            signals.interrupt(signal);
        }
        let mut left = Leftovers::default();
        if std::mem::replace(&mut self.leader_has_ended, true) {
            return left;
        }
        if self.ended.is_none() {
            // The last resort may have been quicker than this thread; and what ended after the term, while
            // this process was frozen for one, has not ended in it.
            let in_time = self.leadership.authority() != Authority::None && !self.work.was_killed();
            self.ended = Some(if in_time {
                left = self.work.left();
                End::Leftovers(status, left.count())
            } else {
                End::Because(Why::Lost(
                    self.renewals.explain("its deadline passed without a renewal"),
                ))
            });
        } else if !matches!(self.ended, Some(End::Signal)) {
            return left;
        }
        if !empty {
            self.terminate();
        }
        left
    }

    fn terminate(&mut self) {
        self.work.terminate();
        self.limit();
    }

    fn limit(&mut self) {
        if self.give_up_at.is_none() {
            self.kill_at.get_or_insert_with(|| Instant::now() + self.grace);
        }
    }

    fn kill(&mut self) {
        self.work.kill();
        self.kill_at = None;
        self.replace_at
            .get_or_insert_with(|| Instant::now() + WARDEN_TIME_MAX);
        self.give_up_at
            .get_or_insert_with(|| Instant::now() + UNKILLABLE_AFTER);
    }

    fn because(&mut self, why: Why) {
        if self.ended.is_none() {
            self.ended = Some(End::Because(why));
        }
    }

    /// Says that the command was asked to end, which it was already.
    fn doubt(&mut self, command: &str, voice: Voice) {
        let (name, token) = (self.leadership.name().as_str(), self.leadership.token());
        let left = self.leadership.remaining();
        if self.leadership.is_ending() {
            self.because(Why::Asked);
            let text = format!("lease \"{name}\": asked to step down; {command} gets SIGTERM");
            voice.say("asked", &text, json!({"lease": name, "token": token.number()}));
            return;
        }
        let why = self.renewals.explain("it could not be renewed in time");
        let text = format!(
            "lease \"{name}\": leadership is doubtful, {} before its deadline: {why}; {command} gets SIGTERM",
            short(left)
        );
        self.because(Why::Lost(why));
        let fields = json!({"lease": name, "token": token.number(), "remaining_ms": in_json(left)});
        voice.say("doubted", &text, fields);
    }

    /// Says that the work cannot be killed. While it lives its lease is renewed, so that no other works
    /// beside it.
    fn outlive(&mut self, command: &str, voice: Voice) {
        if std::mem::replace(&mut self.outlives, true) {
            return;
        }
        let (name, token) = (self.leadership.name().as_str(), self.leadership.token());
        let text = format!(
            "lease \"{name}\": a part of {command} is still there {UNKILLABLE_AFTER:?} after SIGKILL and cannot be killed, so term \
             {token} goes on; {WHERE_IT_IS}, or signal tenure once more to let the lease run out"
        );
        voice.warn(
            "unkillable",
            &text,
            json!({"lease": name, "token": token.number()}),
        );
    }
}
