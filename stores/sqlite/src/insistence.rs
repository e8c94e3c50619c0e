//! Getting between the transactions of a writer who rests too shortly.
//!
//! Whoever commits and begins again at once leaves the lock free for some microseconds, and pauses of a
//! millisecond meet such a gap by chance. A renewal that waits for a whole ttl in vain ends a term; and the
//! claim of a later term must come through beside the very writer whom it is to stop. So who has waited for a
//! while tries ever so often, for a while:
//! - on a thread of its own, which may sleep for microseconds, and not on one that serves others;
//! - one at a time for each file with a log, whichever process it is of, and else for each handle: however
//!   many wait, it costs a part of one processor. The others go on as before, and have their turns.

use crate::log::Log;
use crate::patience::{Patience, Waiting};
use crate::trouble::Trouble;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};
use tokio::sync::oneshot;

/// How long a request waits like all others before it insists. Where only short writes are in its way it has
/// its turn by then.
const AFTER: Duration = Duration::from_millis(20);

/// How long a turn lasts. Then another has one, if somebody waits for it.
const TURN_MAX: Duration = Duration::from_millis(250);

/// Between two tries. What is left free by whoever begins again at once is some 20 µs.
const PAUSE: Duration = Duration::from_micros(50);

/// The name of the thread.
const THREAD: &str = "tenure-insists";

/// By how many nanoseconds the kernel may lengthen these pauses: else it doubles them, to wake several
/// threads at once.
const SLACK: NonZeroU64 = NonZeroU64::MIN;

/// As [`patiently`](crate::patience::patiently), for a write, which somebody's transactions may keep out one
/// after the other. `log` is that of the file, if it has one.
///
/// Whoever drops the future waits for a try that is under way, as if it had been made on that thread.
///
/// # Errors
/// As there.
pub(crate) async fn insistently<T: Send + 'static>(
    patience: &Patience,
    subject: impl Fn() -> String + Send,
    path: &str,
    log: impl Fn() -> Option<Arc<Log>> + Send,
    step: impl FnMut() -> Result<T, Trouble> + Send + 'static,
) -> Result<T, StoreError> {
    let mut waiting = Waiting::new(patience, subject, path);
    let tries = Tries(Arc::new(Mutex::new(Some(step))));
    loop {
        let tried = match Turn::begin(patience, waiting.waited(), &log) {
            Some(_turn) => tries.many().await,
            None => tries.one(),
        };
        if let Some(outcome) = waiting.judge(tried) {
            return outcome;
        }
        tokio::time::sleep(patience.pause()).await;
    }
}

/// The right to insist.
struct Turn<'a> {
    patience: &'a Patience,
    log: Option<Arc<Log>>,
}

impl<'a> Turn<'a> {
    /// `None` where it is too soon, or another has it.
    fn begin(patience: &'a Patience, waited: Duration, log: impl Fn() -> Option<Arc<Log>>) -> Option<Self> {
        if waited < AFTER || patience.insists.swap(true, Ordering::SeqCst) {
            return None;
        }
        let mut turn = Self { patience, log: None };
        if let Some(log) = log() {
            if !log.reserve() {
                return None;
            }
            turn.log = Some(log);
        }
        Some(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.give_back();
        }
        self.patience.insists.store(false, Ordering::SeqCst);
    }
}

/// A write that is tried by whichever thread has it just now; gone when it is given up.
struct Tries<Step>(Arc<Mutex<Option<Step>>>);

impl<Step> Drop for Tries<Step> {
    fn drop(&mut self) {
        drop(locked(&self.0).take());
    }
}

impl<T, Step> Tries<Step>
where
    T: Send + 'static,
    Step: FnMut() -> Result<T, Trouble> + Send + 'static,
{
    fn one(&self) -> Result<T, Trouble> {
        try_once(&self.0).expect("it is given up only with this")
    }

    /// What came of it in a turn. As [`one`](Self::one) where the system gives no thread.
    async fn many(&self) -> Result<T, Trouble> {
        let (tried, told) = oneshot::channel();
        let step = Arc::clone(&self.0);
        let insist = move || {
            // Where it is refused, the pauses are longer.
            let _as_it_is_then = set_current_timer_slack(Some(SLACK));
            let end = Instant::now() + TURN_MAX;
            while let Some(outcome) = try_once(&step) {
                if is_over(&outcome) || Instant::now() >= end {
                    let _given_up = tried.send(outcome);
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        };
        match Builder::new().name(THREAD.to_owned()).spawn(insist) {
            Ok(_) => told.await.unwrap_or_else(|_panicked| {
                Err(Trouble::Told(StoreError::unknown(
                    Fault::Internal,
                    "the thread that was to write has ended".to_owned(),
                )))
            }),
            Err(_no_thread) => self.one(),
        }
    }
}

/// `None` once it is given up.
fn try_once<T>(step: &Mutex<Option<impl FnMut() -> Result<T, Trouble>>>) -> Option<Result<T, Trouble>> {
    locked(step).as_mut().map(|step| step())
}

fn is_over<T>(outcome: &Result<T, Trouble>) -> bool {
    !matches!(outcome, Err(trouble) if trouble.is_locked())
}

/// Nothing is left half-done in it: a write that panics rolls back.
fn locked<Step>(step: &Mutex<Option<Step>>) -> MutexGuard<'_, Option<Step>> {
    step.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::{AFTER, THREAD, Turn, insistently};
    use crate::database::Database;
    use crate::options::SqliteOptions;
    use crate::patience::Patience;
    use crate::trouble::Trouble;
    use rusqlite::ffi;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;
    use tenure_core::{Fault, StoreError};
    use tokio::sync::Notify;
    use tokio::time::timeout;

    const SCENARIOS: usize = 5;

    /// How long an answer is waited for, on a loaded machine.
    const BOUND: Duration = Duration::from_secs(60);

    fn run<Outcome>(work: impl Future<Output = Outcome>) -> Outcome {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(work)
    }

    fn insists() -> bool {
        std::thread::current().name() == Some(THREAD)
    }

    fn another_writes<T>() -> Result<T, Trouble> {
        let busy = ffi::Error::new(ffi::SQLITE_BUSY);
        Err(Trouble::Statement(rusqlite::Error::SqliteFailure(busy, None)))
    }

    /// Then a write has waited for as long as it may.
    fn unless_the_machine_stood_still<T>(
        mut scenario: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut outcome = scenario();
        for _ in 1..SCENARIOS {
            if outcome.as_ref().is_err_and(|error| error.fault == Fault::Busy) {
                outcome = scenario();
            }
        }
        outcome
    }

    async fn written<T: Send + 'static>(
        patience: &Patience,
        step: impl FnMut() -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        insistently(patience, || "a write".to_owned(), "leases.db", || None, step).await
    }

    /// On the thread that asks it pauses for so long that it would meet such a gap by chance; and may not
    /// take up that thread.
    #[test]
    fn a_write_that_has_waited_for_a_while_is_tried_again_and_again_on_a_thread_of_its_own() {
        let outcome = unless_the_machine_stood_still(|| {
            let mut tries = 0;
            run(written(&Patience::new(), move || {
                tries += usize::from(insists());
                match tries > 10 {
                    true => Ok(tries),
                    false => another_writes(),
                }
            }))
        });
        assert_eq!(outcome, Ok(11));
    }

    /// Many that wait cost no more of a processor than one does.
    #[test]
    fn one_write_at_a_time_insists_once_it_has_waited() {
        let patience = Patience::new();
        let turn = |waited| Turn::begin(&patience, waited, || None);
        assert!(turn(AFTER / 2).is_none());
        let first = turn(AFTER);
        assert!(first.is_some() && turn(AFTER).is_none());
        drop(first);
        assert!(turn(AFTER).is_some());
    }

    /// As two processes have it. Who waits for the file's turn has not his handle's either.
    #[test]
    fn one_handle_of_a_file_with_a_log_insists_at_a_time() {
        fn turn(handle: &Database) -> Option<Turn<'_>> {
            Turn::begin(&handle.patience, AFTER, || handle.log())
        }
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path().join("leases.db"));
        let [one, other] = [(); 2].map(|()| Database::open(&options).unwrap());
        let first = turn(&one);
        assert!(first.is_some() && turn(&other).is_none());
        drop(first);
        assert!(turn(&other).is_some());
    }

    /// Others have their turns meanwhile, and the request its answer.
    #[test]
    fn a_write_that_insists_in_vain_is_given_up_when_its_time_is_over() {
        let patience = Patience::new();
        let waits = async { timeout(BOUND, written::<()>(&patience, another_writes)).await };
        let outcome = run(waits).expect("it does not insist for ever");
        assert_eq!(outcome.map_err(|error| error.fault), Err(Fault::Busy));
    }

    #[test]
    fn a_write_that_is_given_up_while_it_insists_is_tried_no_more() {
        run(async {
            let (patience, insisting, kept) = (Patience::new(), Arc::new(Notify::new()), Arc::new(()));
            let (tells, lives) = (Arc::clone(&insisting), Arc::clone(&kept));
            let write = written::<()>(&patience, move || {
                let _lives = &lives;
                if insists() {
                    tells.notify_one();
                }
                another_writes()
            });
            tokio::select! {
                () = insisting.notified() => {}
                never = write => panic!("{never:?}"),
            }
            assert_eq!(Arc::strong_count(&kept), 1, "the thread has it still");
            assert!(!patience.insists.load(Ordering::SeqCst), "nobody else has a turn");
        });
    }
}
