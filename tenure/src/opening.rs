//! Opening a store for as long as there is patience: one that is away when a program starts is waited for as one that goes away
//! later.

use crate::driver::{BackOff, milliseconds};
use crate::registry::{Registry, SharedStore};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::time::{Instant, sleep, timeout};

/// From one attempt to the next. The jitter is for the copies of a service that were started together.
const PAUSES: BackOff = BackOff {
    base: Duration::from_millis(500),
    jitter_max: Duration::from_millis(500),
    pause_max: Duration::from_secs(5),
};

/// What the first attempt may take, however short the patience is.
const FIRST_ATTEMPT_MIN: Duration = Duration::from_secs(10);

impl Registry {
    /// Opens the store of a URL with the schemes that are [compiled in](Self::compiled_in), and waits for it for `patience`
    /// where it is away, as `tenure run` does: for a program that may be started in an outage.
    ///
    /// # Errors
    /// As [`open_within`](Self::open_within).
    pub async fn connect_within(url: &str, patience: Duration) -> Result<SharedStore, StoreError> {
        Self::compiled_in().open_within(url, patience).await
    }

    /// Opens the store of a URL, and tries again for `patience` where that may help: after about a second, then less often, every
    /// five seconds in the end. Each failure is a line of the log. With [`Duration::MAX`] it waits for as long as it takes.
    ///
    /// The first attempt is made however short the patience is, and may take 10 s. Dropping the future ends all.
    ///
    /// # Errors
    /// At once what only a person can mend ([`Fault::is_misconfiguration`]). When the patience is over, why the last attempt that
    /// was answered failed, or [`Fault::TimedOut`] if none was. Nothing was started. No message holds a password.
    pub async fn open_within(&self, url: &str, patience: Duration) -> Result<SharedStore, StoreError> {
        let began = Instant::now();
        let left = || patience.saturating_sub(began.elapsed());
        let gave_up = |error: StoreError| StoreError {
            message: format!("{}; gave up after {:.1?}", error.message, began.elapsed()),
            ..error
        };
        let mut attempt_max = patience.max(FIRST_ATTEMPT_MIN);
        let mut last = None;
        let mut pauses = PAUSES.pauses();
        loop {
            let error = match timeout(attempt_max, self.open(url)).await {
                Ok(Err(error)) if !error.fault.is_misconfiguration() => error,
                Ok(outcome) => return outcome,
                Err(_) => return Err(gave_up(last.unwrap_or_else(silent))),
            };
            let retry_in = pauses.next().unwrap_or(PAUSES.pause_max);
            if retry_in >= left() {
                sleep(left()).await;
                return Err(gave_up(error));
            }
            tracing::warn!(target: "tenure", %error, retry_in_ms = milliseconds(retry_in), "Store not opened");
            sleep(retry_in).await;
            attempt_max = left();
            last = Some(error);
        }
    }
}

/// What has answered nothing, neither an error.
fn silent() -> StoreError {
    StoreError::not_applied(Fault::TimedOut, "the store has not answered; is it reachable?")
}
