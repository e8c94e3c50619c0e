//! Refusals on their way into the database: at the cost of the refused, not of the term that holds the mark.

use crate::thread::OwnThread;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{FenceError, FencingToken, Refusals, ResourceName};

/// Shortest time between two notes: a refused writer that tries without end costs one small write a second.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// How long one note may take.
const NOTE_TIME_MAX: Duration = Duration::from_secs(5);

/// Where a fence keeps its refusals.
pub trait Notes: Send + Sync + 'static {
    /// Adds `count` refusals of `resource`, the last of `last`.
    ///
    /// # Errors
    /// Why it could not be written, without a secret: it goes into the log.
    fn note(
        &self,
        resource: &ResourceName,
        count: u64,
        last: FencingToken,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// Counts refusals, and notes them in a task that lives from the first of them until there were none for a second.
#[derive(Debug)]
pub struct Noter<N: Notes> {
    notes: N,
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

impl<N: Notes> Noter<N> {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(notes: N) -> Arc<Self> {
        Arc::new(Self {
            notes,
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `error` if it is a refusal, and has it noted on `thread`.
    pub fn count(self: &Arc<Self>, thread: &OwnThread, error: &FenceError) {
        if self.begins(error) {
            let noter = Arc::clone(self);
            thread.leave(async move { noter.note_until_quiet().await });
        }
    }

    /// Counts `error` if it is a refusal, and has it noted on the runtime that this is called on, where there is one.
    pub fn count_here(self: &Arc<Self>, error: &FenceError) {
        if !self.begins(error) {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let noter = Arc::clone(self);
                runtime.spawn(async move { noter.note_until_quiet().await });
            }
            // Counted all the same: the next one, or the last note, takes it along.
            Err(_none) => self.lock().running = false,
        }
    }

    /// Counts; whether a task has to be started now.
    fn begins(&self, error: &FenceError) -> bool {
        if error.refused().is_none() {
            return false;
        }
        #[cfg(feature = "metrics")]
        metrics::counter!(tenure_core::REFUSALS_METRIC, "reason" => error.reason().unwrap_or_default())
            .increment(1);
        let mut state = self.lock();
        state.refusals.count(error);
        state.warn(error);
        !std::mem::replace(&mut state.running, true)
    }

    async fn note_until_quiet(&self) {
        let mut task = Task {
            noter: self,
            ended: false,
        };
        loop {
            self.note().await;
            tokio::time::sleep(NOTE_EVERY).await;
            let mut state = self.lock();
            if state.refusals.is_empty() {
                state.running = false;
                task.ended = true;
                return;
            }
        }
    }

    /// Writes what has been counted, after a note that is under way. What cannot be written is lost, but for the log.
    pub async fn note(&self) {
        let _turn = self.writing.lock().await;
        let pending: Vec<_> = self.lock().refusals.take().collect();
        for (resource, refused) in pending {
            let noting = self.notes.note(&resource, refused.count, refused.last);
            let why = match tokio::time::timeout(NOTE_TIME_MAX, noting).await {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => why,
                Err(_late) => format!("no answer within {NOTE_TIME_MAX:?}"),
            };
            tracing::warn!(%resource, refusals = refused.count, "refusals could not be noted: {why}");
        }
    }
}

/// A task that is dropped with its runtime must not keep another from being started.
struct Task<'a, N: Notes> {
    noter: &'a Noter<N>,
    ended: bool,
}

impl<N: Notes> Drop for Task<'_, N> {
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
        let due = |warned| now.duration_since(warned) >= NOTE_EVERY;
        if self.warned_at.is_none_or(due) {
            self.warned_at = Some(now);
            tracing::warn!(refusals = self.unwarned, "{error}");
            self.unwarned = 0;
        }
    }
}
