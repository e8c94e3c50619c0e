//! Refusals on their way to the server: at the cost of the refused, not of the term that holds the mark.

use super::script::REFUSALS;
use crate::fault::Deed;
use crate::script::Arguments;
use crate::site::Site;
use crate::thread::OwnThread;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{FenceError, Refusals};

/// Shortest time between two notes: a refused writer that tries without end costs one small write a second.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Counts refusals, and notes them in a task that lives from the first of them until there were none for a second.
pub(super) struct Noter {
    site: Arc<Site>,
    state: Mutex<State>,
    /// Held while a note is written: whoever ends the process waits for one that is under way.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    refusals: Refusals,
    running: bool,
    warned_at: Option<Instant>,
    unwarned: u64,
}

impl Noter {
    pub(super) fn new(site: Arc<Site>) -> Arc<Self> {
        Arc::new(Self {
            site,
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `error` if it is a refusal.
    pub(super) fn count(self: &Arc<Self>, thread: &OwnThread, error: &FenceError) {
        if error.refused().is_none() {
            return;
        }
        let mut state = self.lock();
        state.refusals.count(error);
        state.warn(error);
        if !state.running {
            state.running = true;
            let noter = Arc::clone(self);
            thread.leave(async move { noter.note_until_quiet().await });
        }
    }

    async fn note_until_quiet(&self) {
        loop {
            self.note().await;
            tokio::time::sleep(NOTE_EVERY).await;
            let mut state = self.lock();
            if state.refusals.is_empty() {
                state.running = false;
                return;
            }
        }
    }

    /// Writes what has been counted. What cannot be written is lost, but for the log.
    pub(super) async fn note(&self) {
        let _turn = self.writing.lock().await;
        let pending: Vec<_> = self.lock().refusals.take().collect();
        for (resource, refused) in pending {
            let arguments = Arguments::on([self.site.keys.refusals(&resource)])
                .with(refused.count)
                .with(refused.last);
            let noted = self
                .site
                .run(&REFUSALS, &arguments, Deed::Write, "refusals")
                .await;
            if noted.is_err() {
                tracing::warn!(%resource, refusals = refused.count, "refusals could not be noted");
            }
        }
    }
}

impl State {
    /// At most once a second: a refused writer may try a million times.
    fn warn(&mut self, error: &FenceError) {
        self.unwarned = self.unwarned.saturating_add(1);
        let now = Instant::now();
        if self
            .warned_at
            .is_none_or(|warned| now.duration_since(warned) >= NOTE_EVERY)
        {
            self.warned_at = Some(now);
            tracing::warn!(refusals = self.unwarned, "{error}");
            self.unwarned = 0;
        }
    }
}
