//! Refusals on their way into the table: at the cost of the refused, not of the term that holds the mark.

use super::connection::{connect, reconnect};
use super::mark;
use crate::options::SqliteOptions;
use crate::patience::{LOCK_WAIT_MAX, Patience};
use crate::seat::Seat;
use crate::transaction;
use crate::trouble::Trouble;
use rusqlite::Connection;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tenure_core::{FenceError, RefusalLine, Refusals};

/// Shortest time between two notes: a refused writer that tries without end costs one short write a second.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// Longest pause after a note that failed: a file that stays as it is is tried once in that time, and the log
/// says so once in it.
const NOTE_AGAIN_MAX: Duration = Duration::from_secs(30);

/// Longest that dropping a fence waits until its last refusals are noted.
const LAST_NOTE_WAIT_MAX: Duration = Duration::from_millis(100);

/// Counts need not survive a power cut, so nobody waits for the disk where there is a write-ahead log.
const RELAXED: &str = "NORMAL";

/// Counts refusals, and notes them on a thread that lives from the first of them until there were none for a
/// second.
///
/// Not where they happen: there the user's transaction is open, and what it rolls back would be lost with it.
pub(super) struct Noter {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    file: SqliteOptions,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    refusals: Refusals,
    /// Whether the thread lives; when it does not, whoever counts starts it.
    running: bool,
    closing: bool,
}

impl Noter {
    /// For the file at a path that is absolute: it is opened at the first refusal, and the process may have
    /// changed its directory by then.
    pub(super) fn new(file: SqliteOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                file,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
            thread: Mutex::new(None),
        }
    }

    /// Counts `error` if it is a refusal. Never waits for the file.
    pub(super) fn count(&self, error: &FenceError) {
        if error.refused().is_none() {
            return;
        }
        #[cfg(feature = "metrics")]
        metrics::counter!(tenure_core::REFUSALS_METRIC, "reason" => error.reason().unwrap_or_default())
            .increment(1);
        let mut state = self.shared.lock();
        state.refusals.count(error);
        if state.running {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let named = std::thread::Builder::new().name("tenure-fence".to_owned());
        // Where no thread can be started, the next refusal tries again.
        if let Ok(thread) = named.spawn(move || shared.note_until_quiet()) {
            state.running = true;
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
    }
}

impl Drop for Noter {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It ends within `LAST_NOTE_WAIT_MAX` once it sees that this closes.
            let _panicked = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_until_quiet(&self) {
        let patience = Patience::new();
        let mut seat: Option<Arc<Seat<Connection>>> = None;
        let mut pause = NOTE_EVERY;
        loop {
            let (line, pending) = {
                let mut state = self.lock();
                (
                    state.refusals.take_line(),
                    state.refusals.take().collect::<Vec<_>>(),
                )
            };
            // Here, and not where they happen: a refused writer may try a million times.
            if let Some(RefusalLine { refusals, last }) = line {
                tracing::warn!(refusals, "{last}");
            }
            let noted = self.patiently(&patience, || {
                let seat = match &mut seat {
                    Some(seat) => seat,
                    empty => {
                        let (connection, paths, files) = connect(&self.file, RELAXED)?;
                        empty.insert(Seat::new(paths, (connection, files)))
                    }
                };
                let connection = seat.take(|| reconnect(&self.file, RELAXED))?;
                transaction::write(&connection, |connection| {
                    let each = |(resource, refused): &(_, _)| mark::note(connection, resource, *refused);
                    pending.iter().try_for_each(each)
                })
            });
            let shown = || self.file.path.display().to_string();
            let noted = noted.map_err(|trouble| trouble.into_error("the fence", &shown()));
            pause = match &noted {
                Ok(()) => NOTE_EVERY,
                Err(error) => {
                    let refusals: u64 = pending.iter().map(|(_, refused)| refused.count).sum();
                    tracing::warn!(refusals, "refusals could not be noted: {error}");
                    (pause * 2).min(NOTE_AGAIN_MAX)
                }
            };
            let mut state = self.lock();
            if noted.is_err() && !state.closing {
                for (resource, refused) in &pending {
                    state.refusals.put_back(resource, *refused);
                }
            }
            let waited = self
                .changed
                .wait_timeout_while(state, pause, |state| !state.closing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.refusals.is_empty() {
                state.running = false;
                return;
            }
        }
    }

    fn patiently(
        &self,
        patience: &Patience,
        mut note: impl FnMut() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut closing_since = None;
        let began = Instant::now();
        loop {
            match note() {
                Err(trouble) if trouble.is_locked() && began.elapsed() < LOCK_WAIT_MAX => {}
                outcome => return outcome,
            }
            if self.lock().closing {
                let since = closing_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= LAST_NOTE_WAIT_MAX {
                    return note();
                }
            }
            std::thread::sleep(patience.pause());
        }
    }
}
