//! Waiting for a lock that another process holds: fair, jittered, bounded, and blocking nobody.

use crate::trouble::Trouble;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Draws the pauses. Two processes that waited in step would collide again and again.
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    /// Seeded from the process's own random source.
    pub(crate) fn seeded() -> Self {
        Self(AtomicU64::new(RandomState::new().build_hasher().finish()))
    }

    /// The next pause.
    pub(crate) fn pause(&self) -> Duration {
        // Weyl sequence and a mixing step: cheap, and spread evenly enough for a pause.
        let state = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mixed = (state ^ (state >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        PAUSE_MIN + Duration::from_micros((mixed >> 32) % PAUSE_SPREAD_US)
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
    jitter: &Jitter,
    subject: impl Fn() -> String + Send,
    path: &str,
    mut step: impl FnMut() -> Result<T, Trouble> + Send,
) -> Result<T, StoreError> {
    let mut began = None;
    loop {
        match step() {
            Ok(outcome) => return Ok(outcome),
            Err(trouble) if trouble.is_locked() => {
                let waited = began.get_or_insert_with(Instant::now).elapsed();
                if waited >= LOCK_WAIT_MAX {
                    return Err(still_in_the_way(trouble, &subject(), path, waited));
                }
            }
            Err(trouble) => return Err(trouble.into_error(&subject(), path)),
        }
        tokio::time::sleep(jitter.pause()).await;
    }
}

/// As [`patiently`], on a thread that may block: opening, and what the user asks for between two statements of theirs.
pub(crate) fn patiently_blocking<T>(
    jitter: &Jitter,
    path: &str,
    mut step: impl FnMut() -> Result<T, Trouble>,
) -> Result<T, StoreError> {
    let began = Instant::now();
    loop {
        match step() {
            Ok(outcome) => return Ok(outcome),
            Err(trouble) if trouble.is_locked() => {
                if began.elapsed() >= LOCK_WAIT_MAX {
                    return Err(still_in_the_way(trouble, "the store", path, began.elapsed()));
                }
            }
            Err(trouble) => return Err(trouble.into_error("the store", path)),
        }
        std::thread::sleep(jitter.pause());
    }
}

fn still_in_the_way(trouble: Trouble, subject: &str, path: &str, waited: Duration) -> StoreError {
    if matches!(trouble, Trouble::Parted | Trouble::StillUnsynced) {
        return trouble.into_error(subject, path);
    }
    StoreError::not_applied(
        Fault::Busy,
        format!(
            "{subject}: {path} has been locked for {} ms by another process, or by a transaction of this one; if this goes on, a \
             process was frozen in the middle of a write: find it with \"fuser -v {path}\" or \"lsof {path}\" on the host, not in \
             a container (state T in ps), then resume it with kill -CONT or end it with kill -KILL",
            waited.as_millis()
        ),
    )
}
