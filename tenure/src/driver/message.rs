//! What the handles of an election say to its driver.

use crate::Leadership;
use crate::sync::{blocking, mpsc, oneshot};
use tenure_core::{Departure, FencingToken, StoreError};

/// Why a campaign led to nothing.
pub(crate) enum NotWon {
    Store(StoreError),
    /// This election campaigns or leads already.
    Busy,
}

/// Who campaigns.
pub(crate) struct Waiting {
    pub(crate) won: oneshot::Sender<Result<Leadership, NotWon>>,
    /// For the leadership to speak to the driver.
    pub(crate) messages: mpsc::UnboundedSender<Message>,
}

/// What handles say to the driver. The queue is not bounded by a number, but by the handles: each sends at
/// most one message for each of its few methods and waits for the answer, or is gone.
pub(crate) enum Message {
    Campaign(Waiting),
    Withdraw,
    StepDown {
        token: FencingToken,
    },
    WorkEnded {
        token: FencingToken,
        departed: Option<oneshot::Sender<Departure>>,
    },
    /// The progress of a stuck term is to be looked at.
    Progress,
    /// Leave: end everything; answer, if asked to, when nothing is held any more.
    Close {
        closed: Option<blocking::Sender<()>>,
    },
}
