//! Opening the store, for as long as there is patience: one that is away when this process starts is waited
//! for as one that goes away later.

use super::story::Story;
use super::waiting::{ATTEMPT_REQUESTS, gave_up, silent};
use crate::arguments::Patience;
use crate::exit::Failure;
use crate::manager;
use crate::output::Voice;
use crate::place::Place;
use std::time::Duration;
use tenure::tooling::{Candidacy, NotOpened, open_patiently};
use tenure::{Event, LeaseName, SharedStore, StoreError, Timing};
use tokio::time::Instant;

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

/// What is to be opened, for whom, and for how long it is tried.
pub(super) struct Asked<'a> {
    pub(super) place: &'a Place,
    pub(super) name: &'a LeaseName,
    pub(super) patience: Patience,
    pub(super) timing: &'a Timing,
}

/// Opens the store of a lease.
///
/// # Errors
/// What only a person can mend, what the one attempt has met, or what stood in the way when the patience was
/// over.
pub(super) async fn open(
    asked: Asked<'_>,
    candidacy: &mut Candidacy,
    voice: Voice,
) -> Result<Opened, Failure> {
    let Asked {
        place,
        name,
        patience,
        timing,
    } = asked;
    let (since, mut story) = (Instant::now(), Story::default());
    let (wait, first_attempt_max) = match patience {
        // The first attempt is made however short the time is.
        Patience::Limited(wait) => (
            wait,
            wait.saturating_add(timing.request_timeout() * ATTEMPT_REQUESTS),
        ),
        Patience::Endless => (Duration::MAX, Duration::MAX),
        Patience::OneAttempt => {
            let store = place.open().await?;
            return Ok(opened(store, since, story));
        }
    };
    let mut is_first = true;
    let failed = |error: &StoreError, retry_in| {
        candidacy.not_opened(error);
        let event = Event::AttemptFailed {
            name: name.clone(),
            error: of_lease(error.clone(), name),
            retry_in,
        };
        story.take_in(event, patience, voice);
        if std::mem::take(&mut is_first) {
            // It takes part: whoever has started it need not wait for the store as well.
            manager::ready();
            manager::status("waits for the store");
        }
    };
    match open_patiently(wait, first_attempt_max, || place.open(), failed).await {
        Ok(store) => {
            candidacy.opened();
            Ok(opened(store, since, story))
        }
        Err(NotOpened::Misconfigured(error)) => Err(error.into()),
        Err(NotOpened::GaveUp(Some(error))) => {
            Err(gave_up(of_lease(error, name), name, Some(since.elapsed())))
        }
        // Nothing was answered.
        Err(_) => Err(gave_up(silent(name), name, Some(since.elapsed()))),
    }
}

fn opened(store: SharedStore, since: Instant, mut story: Story) -> Opened {
    story.opened();
    let waiting = Waiting { since, story };
    Opened { store, waiting }
}

/// What is said of a lease names it.
fn of_lease(error: StoreError, name: &LeaseName) -> StoreError {
    let message = Failure::from(error.clone()).of_lease(name.as_str()).message;
    StoreError { message, ..error }
}
