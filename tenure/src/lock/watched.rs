//! What is heard of the place before one's own.

use crate::driver::{BackOff, watch_ends_or_look};
use crate::registry::SharedStore;
use crate::sync::mpsc;
use std::future::pending;
use tenure_core::{LeaseName, WatchEvent};

/// A watch of one place in a queue; it ends with this.
pub(super) struct Watched {
    place: LeaseName,
    hints: mpsc::Receiver<WatchEvent>,
}

impl Watched {
    pub(super) fn of(store: &SharedStore, place: &LeaseName, back_off: BackOff) -> Self {
        Self {
            place: place.clone(),
            hints: watch_ends_or_look(store, place.clone(), back_off),
        }
    }

    pub(super) fn is_of(&self, place: &LeaseName) -> bool {
        self.place == *place
    }

    /// Forgets what was told so far.
    pub(super) fn pass_over(&mut self) {
        while self.hints.try_recv().is_ok() {}
    }

    /// Returns when something was told.
    pub(super) async fn told(&mut self) {
        if self.hints.recv().await.is_none() {
            // Nobody tells anything any more.
            pending::<()>().await;
        }
    }
}
