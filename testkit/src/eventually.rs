//! Waiting for something to become true, with a bound and a message.

use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::runtime::on_runtime;

/// What one look at the world may return to [`eventually`]: `bool`, `Option<T>` or `Result<T, E>`.
pub trait Attempt {
    /// What a successful look yields.
    type Value;

    /// The value, or what was found instead.
    ///
    /// # Errors
    /// What was found instead.
    fn outcome(self) -> Result<Self::Value, String>;
}

impl Attempt for bool {
    type Value = ();

    fn outcome(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("false".to_owned()) }
    }
}

impl<T> Attempt for Option<T> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, E: Display> Attempt for Result<T, E> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

/// Looks again and again until `look` succeeds, and returns its value.
///
/// # Panics
/// When it did not succeed within `timeout`. The message holds `what` and the last finding. At least one look
/// is taken after the time is over, so that a machine that stalled between two looks does not fail a test.
#[track_caller]
pub fn eventually<A: Attempt>(timeout: Duration, what: &str, mut look: impl FnMut() -> A) -> A::Value {
    let start = Instant::now();
    loop {
        let last_look = start.elapsed() >= timeout;
        match look().outcome() {
            Ok(value) => return value,
            Err(last) if last_look => {
                panic!(
                    "{}",
                    Error::TimedOut {
                        what: what.to_owned(),
                        after: timeout,
                        last
                    }
                )
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// The same as [`eventually`] for a look that must be awaited.
///
/// The bound is checked between looks: a look that may hang needs a bound of its own.
///
/// # Panics
/// As [`eventually`].
pub async fn eventually_async<A, F>(timeout: Duration, what: &str, look: impl FnMut() -> F) -> A::Value
where
    A: Attempt,
    F: Future<Output = A>,
{
    match poll_until(timeout, what, look).await {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Plays a scenario that a machine may be too slow for, until one round has shown what it is about: then it
/// answers `true`.
///
/// # Panics
/// If none of so many rounds has: with `why`.
pub async fn in_one_of<F>(rounds_max: u32, why: &str, mut scenario: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    for _round in 0..rounds_max {
        if scenario().await {
            return;
        }
    }
    panic!("{why}, in each of {rounds_max} rounds");
}

pub(crate) async fn poll_until<A, F>(
    timeout: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
) -> Result<A::Value, Error>
where
    A: Attempt,
    F: Future<Output = A>,
{
    let start = Instant::now();
    loop {
        let last_look = start.elapsed() >= timeout;
        match look().await.outcome() {
            Ok(value) => return Ok(value),
            Err(last) if last_look => {
                return Err(Error::TimedOut {
                    what: what.to_owned(),
                    after: timeout,
                    last,
                });
            }
            // The caller's executor may have no timer, or a paused one.
            Err(_) => on_runtime(async { tokio::time::sleep(PAUSE).await }).await,
        }
    }
}

/// Pause between two looks: short against every bound in use, long enough to leave the processor to the
/// others.
const PAUSE: Duration = Duration::from_millis(20);
