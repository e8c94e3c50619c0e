//! Waiting for a lock that another process holds: fair, jittered, bounded, and blocking nobody.

use crate::trouble::Trouble;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};

/// Longest wait for a locked file inside one request. A write holds the lock for well under a millisecond,
/// so this is a queue of thousands, or a process that was frozen while it wrote.
pub(crate) const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);

/// Shortest pause between two tries.
const PAUSE_MIN: Duration = Duration::from_micros(200);

/// The random part of a pause. The whole stays about constant: pauses that grow make the latecomer win over
/// whoever has waited long, until some process starves.
const PAUSE_SPREAD_US: u64 = 2_800;

/// Who is given up after so long a wait says what it waited for; sooner, somebody had but little time.
const TOLD_AFTER: Duration = Duration::from_millis(100);

/// How often one handle says so: what is asked again and again fills no log.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// How one handle waits.
pub(crate) struct Patience {
    /// Draws the pauses. Two processes that waited in step would collide again and again.
    drawn: AtomicU64,
    told_at: Mutex<Option<Instant>>,
    /// Whether somebody [insists](crate::insistence).
    pub(crate) insists: AtomicBool,
}

impl Patience {
    /// Its pauses are drawn from the process's own random source.
    pub(crate) fn new() -> Self {
        Self {
            drawn: AtomicU64::new(RandomState::new().build_hasher().finish()),
            told_at: Mutex::default(),
            insists: AtomicBool::default(),
        }
    }

    /// The next pause.
    pub(crate) fn pause(&self) -> Duration {
        // Weyl sequence and a mixing step: cheap, and spread evenly enough for a pause.
        let state = self.drawn.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mixed = (state ^ (state >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        PAUSE_MIN + Duration::from_micros((mixed >> 32) % PAUSE_SPREAD_US)
    }

    fn may_tell(&self) -> bool {
        let mut told_at = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may_tell = told_at.is_none_or(|told_at| told_at.elapsed() >= TOLD_EVERY);
        if may_tell {
            *told_at = Some(Instant::now());
        }
        may_tell
    }
}

/// Tries `step` until it succeeds, fails for another reason than a lock, or [`LOCK_WAIT_MAX`] is over.
///
/// Between two tries it sleeps on tokio's timer, so a thread that serves others goes on serving them.
/// Dropping the future between two tries leaves nothing locked: `step` never spans one.
///
/// # Errors
/// [`Fault::Busy`], not applied, when the time is over, or [`Trouble::Parted`]; else what `step` failed with.
pub(crate) async fn patiently<T: Send>(
    patience: &Patience,
    subject: impl Fn() -> String + Send,
    path: &str,
    mut step: impl FnMut() -> Result<T, Trouble> + Send,
) -> Result<T, StoreError> {
    let mut waiting = Waiting::new(patience, subject, path);
    loop {
        if let Some(outcome) = waiting.judge(step()) {
            return outcome;
        }
        tokio::time::sleep(patience.pause()).await;
    }
}

/// As [`patiently`], on a thread that may block: opening, and what the user asks for between two statements
/// of theirs.
pub(crate) fn patiently_blocking<T>(
    patience: &Patience,
    path: &str,
    mut step: impl FnMut() -> Result<T, Trouble>,
) -> Result<T, StoreError> {
    let mut waiting = Waiting::new(patience, || "the store".to_owned(), path);
    loop {
        if let Some(outcome) = waiting.judge(step()) {
            return outcome;
        }
        std::thread::sleep(patience.pause());
    }
}

/// One request that may have to wait.
///
/// Whoever gives it up gives it less time than [`LOCK_WAIT_MAX`] as a rule, and knows only that no answer
/// came: so it says when it goes what stood in its way.
pub(crate) struct Waiting<'a, Subject: Fn() -> String> {
    patience: &'a Patience,
    subject: Subject,
    path: &'a str,
    began: Option<Instant>,
    /// Whether what was met last is another's lock.
    locked: bool,
}

impl<'a, Subject: Fn() -> String> Waiting<'a, Subject> {
    pub(crate) fn new(patience: &'a Patience, subject: Subject, path: &'a str) -> Self {
        Self {
            patience,
            subject,
            path,
            began: None,
            locked: false,
        }
    }

    /// What came of the request by this try; `None` if it is to be tried again.
    pub(crate) fn judge<T>(&mut self, tried: Result<T, Trouble>) -> Option<Result<T, StoreError>> {
        self.locked = false;
        match tried {
            Ok(outcome) => Some(Ok(outcome)),
            Err(trouble) if trouble.is_locked() => {
                let waited = self.began.get_or_insert_with(Instant::now).elapsed();
                let is_ours = matches!(trouble, Trouble::Parted | Trouble::StillUnsynced);
                match (waited >= LOCK_WAIT_MAX, is_ours) {
                    (true, true) => Some(Err(trouble.into_error(&(self.subject)(), self.path))),
                    (true, false) => Some(Err(StoreError::not_applied(Fault::Busy, self.words(waited)))),
                    (false, _) => {
                        self.locked = !is_ours;
                        None
                    }
                }
            }
            Err(trouble) => Some(Err(trouble.into_error(&(self.subject)(), self.path))),
        }
    }

    /// How long it waits already.
    pub(crate) fn waited(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    fn words(&self, waited: Duration) -> String {
        let (subject, path) = ((self.subject)(), self.path);
        format!(
            "{subject}: {path} has been locked for {} ms by another process, or by a transaction of this one; if this goes on, a \
             process was frozen in the middle of a write: find it with \"fuser -v {path}\" or \"lsof {path}\" on the host, not in \
             a container (state T in ps), then resume it with kill -CONT or end it with kill -KILL",
            waited.as_millis()
        )
    }
}

impl<Subject: Fn() -> String> Drop for Waiting<'_, Subject> {
    fn drop(&mut self) {
        let waited = self.waited();
        if self.locked && waited >= TOLD_AFTER && self.patience.may_tell() {
            tracing::warn!("{}; it was given up", self.words(waited));
        }
    }
}
