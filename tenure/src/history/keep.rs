//! The terms of an election of the library, noted as those of the command are.

use super::{History, NotedTerm, TermEnd};
use crate::driver::DriverHandle;
use crate::election::Election;
use crate::sync::{broadcast, select, timeout};
use std::future::Future;
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

impl Election {
    /// Notes every term of this candidacy from now on, for [`History::read`] and `tenure history`: who led,
    /// when, and how it ended. Spawn it, and at the end drop the last [`Leadership`](crate::Leadership),
    /// [`close`](Self::close) or drop the election, and await this, or the end of the last term may be
    /// missing.
    ///
    /// It ends when the election was closed or dropped and its last term is over: not while a
    /// [`Leadership`](crate::Leadership) lives, whose term goes on, and is renewed, also after
    /// [`close`](Self::close). Nothing of the election waits for it. Each term costs five requests; one that
    /// the store does not take within a second is left out. How the work ended it does not know: such a term
    /// has no exit code.
    pub fn keep_history(&self) -> impl Future<Output = ()> + Send + use<> {
        let (store, driver) = self.driven();
        let history = History::new(self.name().clone(), store);
        keep(history, self.candidate().id.clone(), self.events(), driver)
    }
}

/// Notes every term of a candidacy, until its driver is gone.
async fn keep(
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
        cause => format!("lost: {cause}"),
    }
}
