//! What the threads of a process share about one term.

use crate::clock;
use crate::deadline::{Deadline, Extension};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, watch};
use std::cell::Cell;
use std::sync::PoisonError;
use std::time::Duration;
use tenure_core::{Authority, Belief, Cause, FencingToken, Moment};

/// How far a term has come. It only goes on, never back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It goes on.
    Running,
    /// It is being ended: by its own process, or because somebody asked for it.
    Ending,
    /// It is over. (Boxed: a process may have a hundred thousand terms, most of which are not.)
    Over(Box<Cause>),
}

impl Phase {
    fn may_become(&self, next: &Self) -> bool {
        match self {
            Self::Running => *next != Self::Running,
            Self::Ending => matches!(next, Self::Over(_)),
            Self::Over(_) => false,
        }
    }
}

/// One term, as every thread sees it: readable without the driver, so that a driver that is held up (by a
/// disk, by a debugger) cannot keep anybody believing.
#[derive(Debug)]
pub(crate) struct SharedTerm {
    deadline: Deadline,
    /// When the work last reported progress; 0 for never.
    progress_at: AtomicU64,
    /// Whether the driver has stopped renewals and waits to be told of progress.
    progress_awaited: AtomicBool,
    /// Whether its winner has it, or the driver has taken it back: whoever is first.
    settled: AtomicBool,
    /// Held for a few instructions only.
    course: Mutex<Course>,
}

/// How far a term has come, and who listens to that.
#[derive(Debug)]
enum Course {
    /// Nobody has asked for it yet: a channel costs half a kilobyte, and most locks are never listened to.
    Unheard(Phase),
    Heard(watch::Sender<Phase>),
}

/// Progress of this moment is never too long ago.
pub(crate) fn for_good() -> Moment {
    Moment::from_nanos(u64::MAX)
}

impl SharedTerm {
    pub(crate) fn new(belief: Belief) -> Self {
        Self {
            deadline: Deadline::new(belief),
            progress_at: AtomicU64::new(0),
            progress_awaited: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            course: Mutex::new(Course::Unheard(Phase::Running)),
        }
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.deadline.token()
    }

    pub(crate) fn belief(&self) -> Belief {
        self.deadline.belief()
    }

    pub(crate) fn until(&self) -> Moment {
        self.deadline.until()
    }

    pub(crate) fn authority(&self) -> Authority {
        self.deadline.authority(clock::now)
    }

    /// Zero only where [`authority`](Self::authority) is none, then and for ever.
    pub(crate) fn remaining(&self) -> Duration {
        let looked_at = Cell::new(Moment::ZERO);
        let authority = self.deadline.authority(|| {
            looked_at.set(clock::now());
            looked_at.get()
        });
        let until = authority.until();
        until.map_or(Duration::ZERO, |until| until.since(looked_at.get()))
    }

    /// Settles whose it is, once: answers whether it is the asker's.
    #[must_use]
    pub(crate) fn settle(&self) -> bool {
        !self.settled.swap(true, Ordering::SeqCst)
    }

    /// Whether it is known whose it is.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::SeqCst)
    }

    /// Takes over what the engine believes after a step.
    #[must_use]
    pub(crate) fn extend(&self, belief: &Belief) -> Extension {
        self.deadline.extend(belief)
    }

    /// Ends belief at once, before anything else is done about it.
    pub(crate) fn end_belief(&self) {
        self.deadline.end();
    }

    /// Whether its handle or the driver has ended it, rather than somebody only seen its deadline pass.
    pub(crate) fn has_been_ended(&self) -> bool {
        self.deadline.has_been_ended()
    }

    /// The term is ending from now on.
    pub(crate) fn begin_to_end(&self) {
        self.deadline.begin_to_end(clock::now());
        self.enter(Phase::Ending);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        if matches!(phase, Phase::Over(_)) {
            self.end_belief();
        }
        let go_on = |current: &mut Phase| {
            let changes = current.may_become(&phase);
            if changes {
                *current = phase;
            }
            changes
        };
        match &mut *self.course.lock().unwrap_or_else(PoisonError::into_inner) {
            Course::Unheard(current) => {
                go_on(current);
            }
            Course::Heard(current) => {
                current.send_if_modified(go_on);
            }
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match &*self.course.lock().unwrap_or_else(PoisonError::into_inner) {
            Course::Unheard(phase) => phase.clone(),
            Course::Heard(phase) => phase.borrow().clone(),
        }
    }

    /// The phase as it is and as it becomes.
    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *course {
            Course::Unheard(phase) => {
                let sender = watch::Sender::new(phase.clone());
                let receiver = sender.subscribe();
                *course = Course::Heard(sender);
                receiver
            }
            Course::Heard(phase) => phase.subscribe(),
        }
    }

    /// Notes progress. Whether the driver must be told, because it waits for it; once each time that it does.
    #[must_use]
    pub(crate) fn progress(&self) -> bool {
        self.note_progress(clock::now())
    }

    /// As [`progress`](Self::progress), for good: nothing more is to be reported.
    #[must_use]
    pub(crate) fn assure_progress(&self) -> bool {
        self.note_progress(for_good())
    }

    fn note_progress(&self, at: Moment) -> bool {
        // First the progress, then the look whether it is awaited, and the driver the other way round: one of
        // the two sees the other.
        self.progress_at.fetch_max(at.as_nanos(), Ordering::SeqCst);
        self.progress_awaited.load(Ordering::SeqCst) && self.progress_awaited.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn await_progress(&self, awaited: bool) {
        self.progress_awaited.store(awaited, Ordering::SeqCst);
    }

    pub(crate) fn last_progress(&self) -> Moment {
        Moment::from_nanos(self.progress_at.load(Ordering::SeqCst))
    }
}
