//! What a driver is started with.

use crate::registry::SharedStore;
use std::time::Duration;
use tenure_core::{Actions, Candidate, Input, LeaseName, Moment, Note, Timing};

/// What a driver is started with.
pub(crate) struct Plan {
    pub(crate) name: LeaseName,
    pub(crate) store: SharedStore,
    pub(crate) candidate: Candidate,
    pub(crate) timing: Timing,
    pub(crate) note: Note,
    pub(crate) progress_within: Option<Duration>,
    /// What the engine's jitter is drawn from.
    pub(crate) seed: u64,
    pub(crate) recorder: Option<Box<dyn Recorder>>,
}

/// Keeps every step of an engine.
pub(crate) trait Recorder: Send {
    /// Takes a step down, without waiting for anything. Dropping a recorder finishes what it has taken.
    fn record(&mut self, at: Moment, input: &Input, actions: &Actions);
}
