//! The terms of an election of the library, noted as those of the command are.

use super::{History, NotedTerm, TermEnd};
use crate::driver::DriverHandle;
use crate::loss::Why;
use crate::sync::{broadcast, select, timeout};
use std::time::Duration;
use tenure_core::{CandidateId, Cause, Event, FencingToken};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

/// Longest wait for a note; what the store does not take in time is left out.
const NOTE_TIME_MAX: Duration = Duration::from_secs(1);

/// A term that goes on.
struct Present {
    token: FencingToken,
    began: Instant,
    noted: Option<NotedTerm>,
}

/// Notes every term of a candidacy, until its driver is gone.
pub(crate) async fn keep(
    history: History,
    candidate: CandidateId,
    mut events: broadcast::Receiver<Event>,
    driver: DriverHandle,
) {
    let mut present: Option<Present> = None;
    loop {
        let event = select! {
            biased;
            event = events.recv() => event.map_err(|error| match error {
                RecvError::Closed => TryRecvError::Closed,
                RecvError::Lagged(missed) => TryRecvError::Lagged(missed),
            }),
            // What it told last may have come since the look before.
            () = driver.gone() => events.try_recv(),
        };
        match event {
            Ok(Event::Acquired { grant, .. }) => {
                let began = Instant::now();
                let noting = timeout(NOTE_TIME_MAX, history.begin(&candidate, grant.token));
                let noted = noting.await.ok().and_then(Result::ok).flatten();
                present = Some(Present {
                    token: grant.token,
                    began,
                    noted,
                });
            }
            Ok(Event::Ended { token, cause, .. }) => {
                if let Some(present) = present.take_if(|present| present.token == token)
                    && let Some(noted) = present.noted
                {
                    let end = TermEnd::new(present.began.elapsed(), in_words(&cause));
                    let _left_out = timeout(NOTE_TIME_MAX, history.end(noted, &end)).await;
                }
            }
            // Too many have waited: a term may be missing.
            Ok(_) | Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return,
        }
    }
}

fn in_words(cause: &Cause) -> String {
    match cause {
        Cause::GivenBack => "given back".to_owned(),
        cause => format!("lost: {}", Why(cause)),
    }
}
