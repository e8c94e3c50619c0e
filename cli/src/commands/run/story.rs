//! What is seen and said while waiting.

use crate::arguments::Patience;
use crate::output::{Voice, clean, in_json, short};
use serde_json::json;
use std::time::Duration;
use tenure::contract::{Fault, Lease};
use tenure::{Event, Leadership, LeaseName, StoreError};

/// What stands between this candidate and the lease.
pub(super) enum Obstacle {
    Held(Box<Lease>),
    /// Others came before.
    Queue,
    Store(StoreError),
}

/// What was seen while waiting.
#[derive(Default)]
pub(super) struct Story {
    obstacle: Option<Obstacle>,
    /// What stands between this candidate and its place in the queue.
    of_queue: Option<Obstacle>,
    /// Whether it has that place.
    in_queue: bool,
    /// Why the last look at the queue has failed, of those that were told.
    unread: Option<StoreError>,
    told: bool,
    /// Whether the store has answered once.
    is_open: bool,
}

impl Story {
    pub(super) fn obstacle(&self) -> Option<&Obstacle> {
        self.of_queue.as_ref().or(self.obstacle.as_ref())
    }

    /// Leaves out what it may have seen long ago: all but a store that fails.
    pub(super) fn take_what_may_be_old(&mut self) -> Option<Obstacle> {
        match self.obstacle() {
            None | Some(Obstacle::Store(_)) => None,
            Some(_) => self.of_queue.take().or(self.obstacle.take()),
        }
    }

    /// Why it does not know who is before it in the queue, if that was told.
    pub(super) fn unread(&self) -> Option<&StoreError> {
        self.unread.as_ref()
    }

    /// The store has answered: nothing is known of the lease yet.
    pub(super) fn opened(&mut self) {
        self.obstacle = None;
        self.is_open = true;
    }

    pub(super) fn take_in(&mut self, event: Event, patience: Patience, voice: Voice) -> Option<&Obstacle> {
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
                // Once per kind of failure: the tries go on as long as it takes.
                if !is_known(self.obstacle.as_ref(), &error) && patience != Patience::OneAttempt {
                    self.told = true;
                    // Nothing ends the waiting for a store that is mistyped: that is said to whoever wants to
                    // hear errors alone.
                    let hearers = match (patience, self.is_open) {
                        (Patience::Endless, false) => Hearers::AlsoQuiet,
                        _ => Hearers::of(&error),
                    };
                    say_failed(&name, &error, retry_in, voice, hearers);
                }
                Obstacle::Store(error)
            }
            _ => return None,
        };
        self.obstacle = Some(obstacle);
        self.obstacle.as_ref()
    }

    /// As [`take_in`](Self::take_in), of the lease by which it waits in the queue.
    pub(super) fn take_in_of_queue(&mut self, event: Event, voice: Voice) {
        self.of_queue = match event {
            // It has its place: what has failed is a look at who is before it, told once for each kind.
            Event::AttemptFailed {
                name,
                error,
                retry_in,
            } if self.in_queue => {
                self.told = true;
                say_failed(&name, &error, retry_in, voice, Hearers::of(&error));
                self.unread = Some(error);
                return;
            }
            Event::AttemptFailed {
                name,
                error,
                retry_in,
            } => {
                if !is_known(self.of_queue.as_ref(), &error) {
                    self.told = true;
                    say_failed(&name, &error, retry_in, voice, Hearers::of(&error));
                }
                Some(Obstacle::Store(error))
            }
            Event::RenewalFailed { error, .. } => Some(Obstacle::Store(error)),
            // Another process of this candidate's id has its place.
            Event::Standby { .. } => Some(Obstacle::Queue),
            Event::Acquired { .. } => {
                self.in_queue = true;
                None
            }
            Event::Renewed { .. } => None,
            Event::Ended { .. } => {
                self.in_queue = false;
                return;
            }
            _ => return,
        };
    }

    /// Says that the waiting is over, if anything was said of it.
    pub(super) fn won(&self, leadership: &Leadership, waited: Duration, voice: Voice) {
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

fn is_known(last: Option<&Obstacle>, error: &StoreError) -> bool {
    matches!(last, Some(Obstacle::Store(last)) if last.fault == error.fault)
}

/// Who is told.
#[derive(Clone, Copy)]
enum Hearers {
    /// Whoever wants to hear errors alone, too.
    AlsoQuiet,
    NotQuiet,
}

impl Hearers {
    /// Who is told of an error of a store that has answered before. Of a login that is refused, and of
    /// another store in the place of the one that was asked, is tried on, maybe until a person acts.
    fn of(error: &StoreError) -> Self {
        match error.fault {
            Fault::AnotherStore => Self::AlsoQuiet,
            fault if fault.is_misconfiguration() => Self::AlsoQuiet,
            _ => Self::NotQuiet,
        }
    }
}

fn say_failed(name: &LeaseName, error: &StoreError, retry_in: Duration, voice: Voice, hearers: Hearers) {
    let text = format!("{error}; trying on, next in {}", short(retry_in));
    let fields = json!({"lease": name.as_str(), "retry_in_ms": in_json(retry_in)});
    match hearers {
        Hearers::AlsoQuiet => voice.warn("attempt_failed", &text, fields),
        Hearers::NotQuiet => voice.say("attempt_failed", &text, fields),
    }
}
