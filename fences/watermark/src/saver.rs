//! Refusals on their way into the file and the log: at the cost of the refused, not of the term that holds
//! the mark.

use crate::watermark::Marks;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenure_core::{FenceError, RefusalLine, UntoldRefusals};

/// Shortest time between two saves.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// Longest time until a save that has failed is tried again: a disk that stays full says so once in that
/// time.
const RETRY_EVERY_MAX: Duration = Duration::from_secs(30);

/// How many times as long as a save took the disk is left alone after it: a file of many marks is long.
const REST: u32 = 10;

/// Saves refusals, where there is a file, and tells of them, on a thread that lives from the first of them
/// until all are saved and there were none for a second.
#[derive(Default)]
pub(crate) struct Saver {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether something was refused that the last save has not taken along.
    refused: bool,
    untold: UntoldRefusals,
    /// Whether the thread lives; when it does not, whoever is refused starts it.
    running: bool,
    closing: bool,
}

impl Saver {
    /// Something was refused, and counted in memory. Never waits for the disk.
    pub(crate) fn refused(&self, marks: &Arc<Marks>, refusal: &FenceError) {
        let mut state = self.shared.lock();
        state.refused = true;
        state.untold.count(refusal);
        if state.running {
            return;
        }
        let (shared, marks) = (Arc::clone(&self.shared), Arc::clone(marks));
        let named = std::thread::Builder::new().name("tenure-watermark".to_owned());
        // Where no thread can be started, the next refusal tries again.
        if let Ok(thread) = named.spawn(move || shared.save_until_quiet(&marks)) {
            state.running = true;
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
    }

    /// Ends the thread, after a save that is under way: it keeps the file locked.
    pub(crate) fn end(&self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _panicked = thread.join();
        }
        self.shared.tell();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Here, and not where they happen: a refused writer may try a million times.
    fn tell(&self) {
        let line = self.lock().untold.take();
        if let Some(RefusalLine { refusals, last }) = line {
            tracing::warn!(refusals, "{last}");
        }
    }

    fn save_until_quiet(&self, marks: &Marks) {
        let mut pause = SAVE_EVERY;
        loop {
            self.lock().refused = false;
            self.tell();
            let began = Instant::now();
            match marks.save() {
                Ok(()) => pause = SAVE_EVERY,
                Err(error) => {
                    // Nobody may be refused again, and nothing saved but for that: they are still to be
                    // saved.
                    self.lock().refused = true;
                    pause = (pause * 2).min(RETRY_EVERY_MAX);
                    tracing::warn!(%error, retry_in = ?pause, "refusals are not in the file");
                }
            }
            let rest = pause.max(began.elapsed() * REST);
            let waited = self
                .changed
                .wait_timeout_while(self.lock(), rest, |state| !state.closing);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.closing || !state.refused {
                state.running = false;
                return;
            }
        }
    }
}
