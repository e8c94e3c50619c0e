//! What is heard of the place before one's own.

use crate::driver::{BackOff, Listening, watch_ends_or_look};
use crate::registry::SharedStore;
use crate::sync::Surroundings;
use tenure_core::LeaseName;

/// A watch of one place in a queue; it ends with this.
pub(super) struct Watched {
    place: LeaseName,
    listening: Listening,
    /// Where the watch is read.
    surroundings: Surroundings,
}

impl Watched {
    pub(super) fn of(store: &SharedStore, place: &LeaseName, back_off: BackOff) -> Self {
        Self {
            place: place.clone(),
            listening: watch_ends_or_look(store, place.clone(), back_off),
            surroundings: Surroundings::here(),
        }
    }

    pub(super) fn is_of(&self, place: &LeaseName) -> bool {
        self.place == *place
    }

    /// Whether a later turn is served by it as well as by one of its own. Where there is no watch, looks come
    /// ever more seldom.
    pub(super) fn stands(&self) -> bool {
        self.listening.stands()
    }

    /// Whether it is read by the runtime that this runs on: another may have ended, or not be driven just
    /// now.
    pub(super) fn is_read_here(&self) -> bool {
        self.surroundings.are_here()
    }

    /// Forgets what was told so far.
    pub(super) fn pass_over(&mut self) {
        while self.listening.hints.try_recv().is_ok() {}
    }

    /// Whether nobody tells anything any more: what read the watch has ended with its runtime, as of one
    /// whose id this has by now.
    pub(super) fn has_ended(&self) -> bool {
        self.listening.hints.is_closed()
    }

    /// Returns when something was told, or nothing will be.
    pub(super) async fn told(&mut self) {
        let _told_or_ended = self.listening.hints.recv().await;
    }
}
