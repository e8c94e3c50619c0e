//! Refusals on their way into the database: at the cost of the refused, not of the term that holds the mark.

use super::mark;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{FenceError, Refusals};

/// Shortest time between two notes: a refused writer that tries without end costs one small write a second.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// How long one note may take.
const NOTE_TIME_MAX: Duration = Duration::from_secs(5);

/// Counts refusals, and notes them in a task that lives from the first of them until there were none for a second.
#[derive(Debug)]
pub(super) struct Noter {
    marks: Collection<Document>,
    state: Mutex<State>,
    /// Held while a note is written: whoever ends the process waits for one that is under way.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default, Debug)]
struct State {
    refusals: Refusals,
    running: bool,
    warned_at: Option<Instant>,
    unwarned: u64,
}

impl Noter {
    pub(super) fn new(marks: Collection<Document>) -> Arc<Self> {
        Arc::new(Self {
            marks,
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `error` if it is a refusal. Called where a request was awaited, so there is a runtime.
    pub(super) fn count(self: &Arc<Self>, error: &FenceError) {
        if error.refused().is_none() {
            return;
        }
        let mut state = self.lock();
        state.refusals.count(error);
        state.warn(error);
        if state.running {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            state.running = true;
            let noter = Arc::clone(self);
            runtime.spawn(async move { noter.note_until_quiet().await });
        }
    }

    async fn note_until_quiet(&self) {
        let mut running = Running {
            noter: self,
            ended: false,
        };
        loop {
            self.note().await;
            tokio::time::sleep(NOTE_EVERY).await;
            let mut state = self.lock();
            if state.refusals.is_empty() {
                state.running = false;
                running.ended = true;
                return;
            }
        }
    }

    /// Writes what has been counted. What cannot be written is lost, but for the log.
    pub(super) async fn note(&self) {
        let _turn = self.writing.lock().await;
        let pending: Vec<_> = self.lock().refusals.take().collect();
        for (resource, refused) in pending {
            let count = i64::try_from(refused.count).unwrap_or(i64::MAX);
            let noted = self
                .marks
                .update_one(
                    doc! { "_id": mark::refusals_id(&resource) },
                    doc! {
                        "$inc": { "count": count },
                        "$set": { "last": refused.last.signed() },
                        "$currentDate": { "at": true },
                    },
                )
                .upsert(true);
            let noted = tokio::time::timeout(NOTE_TIME_MAX, noted.into_future()).await;
            if !matches!(noted, Ok(Ok(_))) {
                tracing::warn!(%resource, refusals = refused.count, "refusals could not be noted");
            }
        }
    }
}

/// A task that is dropped with its runtime must not keep another from being started.
struct Running<'a> {
    noter: &'a Noter,
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.noter.lock().running = false;
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
