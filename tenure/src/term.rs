//! What the threads of a process share about one term.

use crate::clock;
use crate::sync::{AtomicU64, Ordering, watch};
use tenure_core::{Authority, Belief, Cause, FencingToken, Moment};

/// How far a term has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It goes on.
    Running,
    /// It is being ended: by its own process, or because somebody asked for it.
    Ending,
    /// Renewals have stopped, for want of progress.
    Stuck,
    /// It is over.
    Over(Cause),
}

/// One term, as every thread sees it: readable without the driver, so that a driver that is held up (by a
/// disk, by a debugger) cannot keep anybody believing.
///
/// The numbers are read one by one. Any mixture of an older and a newer state is on the safe side or equal
/// to a reading an instant earlier: `until` and `doubt_from` only rise with renewals, and only fall to end.
#[derive(Debug)]
pub(crate) struct SharedTerm {
    token: FencingToken,
    /// Nanoseconds; 0 once the term is over.
    until: AtomicU64,
    doubt_from: AtomicU64,
    /// When the work last reported progress; 0 for never.
    progress_at: AtomicU64,
    phase: watch::Sender<Phase>,
}

impl SharedTerm {
    pub(crate) fn new(belief: Belief) -> Self {
        Self {
            token: belief.token,
            until: AtomicU64::new(belief.until.as_nanos()),
            doubt_from: AtomicU64::new(belief.doubt_from.as_nanos()),
            progress_at: AtomicU64::new(0),
            phase: watch::Sender::new(Phase::Running),
        }
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.token
    }

    pub(crate) fn belief(&self) -> Belief {
        Belief {
            token: self.token,
            doubt_from: Moment::from_nanos(self.doubt_from.load(Ordering::SeqCst)),
            until: Moment::from_nanos(self.until.load(Ordering::SeqCst)),
        }
    }

    pub(crate) fn authority(&self) -> Authority {
        self.belief().at(clock::now())
    }

    /// Takes over what the engine believes after a step.
    pub(crate) fn update(&self, belief: &Belief) {
        self.doubt_from
            .store(belief.doubt_from.as_nanos(), Ordering::SeqCst);
        // A handle that has ended the term already must not be overruled by a driver that does not know yet.
        let until = belief.until.as_nanos();
        let _ = self
            .until
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |current| {
                (current != 0).then_some(until)
            });
    }

    /// Ends belief at once, before anything else is done about it.
    pub(crate) fn end_belief(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        if matches!(phase, Phase::Over(_)) {
            self.end_belief();
        }
        self.phase.send_if_modified(|current| {
            let changes = *current != phase && !matches!(current, Phase::Over(_));
            if changes {
                *current = phase;
            }
            changes
        });
    }

    /// Renewals go on again after they had stopped for want of progress.
    pub(crate) fn resume(&self) {
        self.phase.send_if_modified(|phase| {
            let stuck = *phase == Phase::Stuck;
            if stuck {
                *phase = Phase::Running;
            }
            stuck
        });
    }

    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn progress(&self) {
        self.progress_at.store(clock::now().as_nanos(), Ordering::SeqCst);
    }

    pub(crate) fn last_progress(&self) -> Moment {
        Moment::from_nanos(self.progress_at.load(Ordering::SeqCst))
    }
}
