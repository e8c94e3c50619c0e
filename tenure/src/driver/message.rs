//! What the handles of an election or of a lock manager say to their driver.

use super::DriverHandle;
use super::permit::Permit;
use crate::held::HeldTerm;
use crate::sync::{blocking, oneshot};
use std::fmt;
use std::time::Duration;
use tenure_core::{Authority, CandidateId, Departure, FencingToken, Grant, Lease, LeaseName, StoreError};

/// Why a campaign led to nothing.
#[derive(Debug)]
pub(crate) enum NotWon {
    Store(StoreError),
    /// Somebody here campaigns for it or holds it already, and the campaign was not to wait for that.
    Busy(Option<Permit>),
    /// Another process holds it, and the campaign was not to wait for that.
    Held(Box<Lease>),
    /// Its record is, or was, another application's, that of this candidate: what was taken is given back.
    OtherApplication(CandidateId),
    /// The driver is gone.
    Stopped,
}

/// What stands between a lease and those who wait for it.
#[derive(Clone, Debug)]
pub(crate) enum Obstacle {
    /// Another process holds it.
    Held(Box<Lease>),
    Store(StoreError),
}

impl From<Obstacle> for NotWon {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Held(lease) => Self::Held(lease),
            Obstacle::Store(error) => Self::Store(error),
        }
    }
}

/// Whether a campaign waits for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queueing {
    /// For other processes; not for anybody here.
    Alone,
    /// Behind whoever came before, here and elsewhere.
    Line,
    /// Behind somebody here who holds it or campaigns for it, as long as it is handed on within this process.
    Follow,
    /// For nobody: one look.
    OneLook,
}

/// What a campaign has led to.
pub(crate) struct Won {
    pub(crate) held: HeldTerm,
    pub(crate) grant: Grant,
}

impl Won {
    /// Takes it up. `None` if that comes so late that it is over, or was given back: its winner has to
    /// campaign again.
    pub(crate) fn take_up(self) -> Option<Self> {
        let term = self.held.term();
        let is_had = term.settle() && term.authority() != Authority::None;
        is_had.then_some(self)
    }
}

/// Who campaigns.
pub(crate) struct Waiting {
    pub(crate) name: LeaseName,
    pub(crate) won: oneshot::Sender<Result<Won, NotWon>>,
    /// For the term to speak to the driver.
    pub(crate) driver: DriverHandle,
    pub(crate) queueing: Queueing,
    /// Nothing is renewed when it was held for so long.
    pub(crate) max_hold: Option<Duration>,
    /// Nothing is renewed without progress for so long; `None` as the driver's plan says.
    pub(crate) progress_within: Option<Duration>,
    /// Kept until the term is over.
    pub(crate) permit: Option<Permit>,
}

impl Waiting {
    /// Tells it that somebody here is before it, or nobody whom it could follow, and gives its permit back.
    pub(crate) fn refuse(self) {
        let _ = self.won.send(Err(NotWon::Busy(self.permit)));
    }

    /// Tells it why it does not get the lease, when its permit is free already: it may try again at once.
    pub(crate) fn disappoint(self, why: NotWon) {
        let Self { won, permit, .. } = self;
        drop(permit);
        let _ = won.send(Err(why));
    }
}

/// Whether the work of a handle has ended, whatever the handle says; lets the handle go if so.
pub(crate) type HasEnded = Box<dyn Fn() -> bool + Send>;

/// What handles say to the driver. The queue is not bounded by a number, but by the handles: each sends at
/// most one message for each of its few methods and waits for the answer, or is gone.
pub(crate) enum Message {
    Campaign(Waiting),
    /// Somebody who campaigned for this lease waits no longer.
    Withdraw {
        name: LeaseName,
    },
    StepDown {
        name: LeaseName,
        token: FencingToken,
    },
    WorkEnded {
        name: LeaseName,
        token: FencingToken,
        /// To be told what became of it; of a term that was over before nothing did.
        departed: Option<oneshot::Sender<Option<Departure>>>,
    },
    /// Let one of its handles go when its work has ended, though nobody says so; looked at with every beat.
    Bind {
        name: LeaseName,
        token: FencingToken,
        has_ended: HasEnded,
    },
    /// Somebody more has begun to count on the term: extend it before its next beat.
    Extend {
        name: LeaseName,
        token: FencingToken,
    },
    /// The progress of a stuck term is to be looked at.
    Progress {
        name: LeaseName,
    },
    /// Tell what stands between a lease and those who wait for it here; `None` where that is one of this
    /// process, or not known.
    Obstacle {
        name: LeaseName,
        told: oneshot::Sender<Option<Obstacle>>,
    },
    /// Answer when everything that was said before has been taken in.
    Hear {
        heard: oneshot::Sender<()>,
    },
    /// Leave: end every campaign; answer, if asked to, when nothing is held any more but by handles that
    /// live.
    Close {
        closed: Option<blocking::Sender<()>>,
    },
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("name", &self.name)
            .field("queueing", &self.queueing)
            .finish_non_exhaustive()
    }
}
