//! Opening the store, for as long as there is patience: one that is away when this process starts is waited for as one that goes
//! away later.

use super::story::Story;
use super::waiting::{ATTEMPT_REQUESTS, gave_up, silent};
use crate::arguments::Patience;
use crate::exit::Failure;
use crate::manager;
use crate::output::Voice;
use crate::place::Place;
use std::time::Duration;
use tenure::{Event, LeaseName, SharedStore, StoreError, Timing};
use tokio::time::{Instant, sleep, timeout_at};

/// The longest pause between two tries, each twice as long as the one before it.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A store that has answered.
pub(super) struct Opened {
    pub(super) store: SharedStore,
    pub(super) waiting: Waiting,
}

/// What there was before the first turn, which is a part of it.
pub(super) struct Waiting {
    /// Since when.
    pub(super) since: Instant,
    /// What was said.
    pub(super) story: Story,
}

/// Opens the store of a lease.
///
/// # Errors
/// What only a person can mend, what the one attempt has met, or what stood in the way when the patience was over.
pub(super) async fn open(
    place: &Place,
    name: &LeaseName,
    patience: Patience,
    timing: &Timing,
    voice: Voice,
) -> Result<Opened, Failure> {
    let (since, mut story) = (Instant::now(), Story::default());
    let deadline = match patience {
        Patience::Limited(wait) => since.checked_add(wait),
        Patience::Endless | Patience::OneAttempt => None,
    };
    // The first attempt is made however short the time is.
    let mut attempt_until = deadline.map(|deadline| deadline + timing.request_timeout() * ATTEMPT_REQUESTS);
    let over = |error| gave_up(error, name, Some(since.elapsed()));
    let mut last = None;
    let mut pause = timing.retry_every().min(PAUSE_MAX);
    loop {
        let error = match by(attempt_until, place.open()).await {
            Some(Ok(store)) => {
                story.opened();
                let waiting = Waiting { since, story };
                return Ok(Opened { store, waiting });
            }
            Some(Err(error)) if patience == Patience::OneAttempt || error.fault.is_misconfiguration() => {
                return Err(error.into());
            }
            Some(Err(error)) => of_lease(error, name),
            None => return Err(over(last.unwrap_or_else(|| silent(name)))),
        };
        let event = Event::AttemptFailed {
            name: name.clone(),
            error: error.clone(),
            retry_in: pause,
        };
        story.take_in(event, patience, voice);
        if last.replace(error.clone()).is_none() {
            // It takes part: whoever has started it need not wait for the store as well.
            manager::ready();
            manager::status("waits for the store");
        }
        attempt_until = deadline;
        if by(deadline, sleep(pause)).await.is_none() {
            return Err(over(error));
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// What comes of `work` until then.
async fn by<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, work).await.ok(),
        None => Some(work.await),
    }
}

/// What is said of a lease names it.
fn of_lease(error: StoreError, name: &LeaseName) -> StoreError {
    let message = Failure::from(error.clone()).of_lease(name.as_str()).message;
    StoreError { message, ..error }
}
