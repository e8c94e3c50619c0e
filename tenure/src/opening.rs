//! Opening a store for as long as there is patience: one that is away when a program starts is waited for as
//! one that goes away later.

use crate::driver::{BackOff, milliseconds};
use crate::registry::{Registry, SharedStore};
use std::fmt;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::time::{Instant, sleep, timeout};

/// From one attempt to the next. The jitter is for the copies of a service that were started together.
const PAUSES: BackOff = BackOff {
    base: Duration::from_millis(500),
    jitter_max: Duration::from_millis(500),
    pause_max: Duration::from_secs(5),
};

/// What the first attempt of [`Registry::open_within`] may take, however short the patience is.
const FIRST_ATTEMPT_MIN: Duration = Duration::from_secs(10);

/// What the last attempt may take, which is made when the patience is over: a store that has come back in the
/// last pause is seen.
const LAST_ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// Why [`open_patiently`] has opened nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotOpened {
    /// What only a person can mend: it was not tried again.
    Misconfigured(StoreError),
    /// The patience is over. Why the last attempt that was answered failed; `None` if none was.
    GaveUp(Option<StoreError>),
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misconfigured(error) => error.fmt(f),
            Self::GaveUp(last) => write!(f, "{}; gave up", last.clone().unwrap_or_else(silent)),
        }
    }
}

impl std::error::Error for NotOpened {}

/// Opens something by `open`, again and again for `patience` where that may help: after about a second, then
/// less often, every five seconds in the end, and a last time when the patience is over. For stores that no
/// URL tells of; [`Registry::open_within`] does so by a URL.
///
/// The first attempt is made however short the patience is, and may take `first_attempt_max`; the last one a
/// second. `failed` is told of each failure after which it is tried again, and how soon. With
/// [`Duration::MAX`] it waits for as long as it takes. Dropping the future ends all.
///
/// # Errors
/// [`NotOpened`].
pub async fn open_patiently<T, Opening>(
    patience: Duration,
    first_attempt_max: Duration,
    mut open: impl FnMut() -> Opening,
    mut failed: impl FnMut(&StoreError, Duration),
) -> Result<T, NotOpened>
where
    Opening: Future<Output = Result<T, StoreError>>,
{
    let began = Instant::now();
    let left = || patience.saturating_sub(began.elapsed());
    let (mut attempt_max, mut last) = (first_attempt_max, None);
    let mut pauses = PAUSES.pauses();
    loop {
        match timeout(attempt_max, open()).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(error)) if error.fault.is_misconfiguration() => {
                return Err(NotOpened::Misconfigured(error));
            }
            Ok(Err(error)) => last = Some(error),
            Err(_) => return Err(NotOpened::GaveUp(last)),
        }
        let left_now = left();
        let Some(error) = last.as_ref().filter(|_| !left_now.is_zero()) else {
            return Err(NotOpened::GaveUp(last));
        };
        let retry_in = pauses.next().unwrap_or(PAUSES.pause_max).min(left_now);
        failed(error, retry_in);
        sleep(retry_in).await;
        attempt_max = left().max(LAST_ATTEMPT_MAX);
    }
}

impl Registry {
    /// Opens the store of a URL with the schemes that are [compiled in](Self::compiled_in), and waits for it
    /// for `patience` where it is away, as `tenure run` does: for a program that may be started in an outage.
    /// Put it beside your signals: whoever has asked for these is not ended by one while this waits.
    ///
    /// # Errors
    /// As [`open_within`](Self::open_within).
    pub async fn connect_within(url: &str, patience: Duration) -> Result<SharedStore, StoreError> {
        Self::compiled_in().open_within(url, patience).await
    }

    /// Opens the store of a URL, and tries again for `patience` where that may help: after about a second,
    /// then less often, every five seconds in the end, and a last time when the patience is over. Each
    /// failure after which it is tried again is a line of the log. With [`Duration::MAX`] it waits for as
    /// long as it takes.
    ///
    /// The first attempt is made however short the patience is, and may take 10 s; the last one a second.
    /// Dropping the future ends all.
    ///
    /// # Errors
    /// At once what only a person can mend ([`Fault::is_misconfiguration`]). When the patience is over, why
    /// the last attempt that was answered failed, or [`Fault::TimedOut`] if none was. Nothing was started. No
    /// message holds a password.
    pub async fn open_within(&self, url: &str, patience: Duration) -> Result<SharedStore, StoreError> {
        let began = Instant::now();
        let failed = |error: &StoreError, retry_in| {
            tracing::warn!(target: "tenure", %error, retry_in_ms = milliseconds(retry_in), "Store not opened");
        };
        let first_attempt_max = patience.max(FIRST_ATTEMPT_MIN);
        let opening = open_patiently(patience, first_attempt_max, || self.open(url), failed);
        opening.await.map_err(|why| match why {
            NotOpened::Misconfigured(error) => error,
            NotOpened::GaveUp(last) => {
                let error = last.unwrap_or_else(silent);
                let message = format!("{}; gave up after {:.1?}", error.message, began.elapsed());
                StoreError { message, ..error }
            }
        })
    }
}

/// What has answered nothing, neither an error.
fn silent() -> StoreError {
    StoreError::not_applied(Fault::TimedOut, "the store has not answered; is it reachable?")
}
