//! The terms of an election of the library, noted as those of the command are.

use super::{History, NotedTerm};
use crate::Election;
use crate::loss::Why;
use std::future::Future;
use std::time::Duration;
use tenure_core::{Cause, Event, FencingToken};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout};

/// Longest wait for a note; what the store does not take in time is left out.
const NOTE_TIME_MAX: Duration = Duration::from_secs(1);

/// A term that goes on.
struct Present {
    token: FencingToken,
    began: Instant,
    noted: Option<NotedTerm>,
}

impl History {
    /// Notes every term of this candidacy from now on, for [`read`](Self::read) and `tenure history`: who led, when, and how it
    /// ended. Spawn it, and at the end close the election, drop it, and await this, or the end of the last term may be missing.
    ///
    /// It ends when the election is dropped. Nothing of the election waits for it. Each term costs five requests; one
    /// that the store does not take within a second is left out.
    pub fn keep(self, election: &Election) -> impl Future<Output = ()> + Send + use<> {
        let (mut events, candidate) = (election.events(), election.candidate().id.clone());
        async move {
            let mut present: Option<Present> = None;
            loop {
                match events.recv().await {
                    Ok(Event::Acquired { grant, .. }) => {
                        let began = Instant::now();
                        let noting = timeout(NOTE_TIME_MAX, self.begin(&candidate, grant.token));
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
                            let led = present.began.elapsed();
                            let words = in_words(&cause);
                            let _left_out = timeout(NOTE_TIME_MAX, self.end(noted, led, &words)).await;
                        }
                    }
                    // Too many have waited: a term may be missing.
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }
}

fn in_words(cause: &Cause) -> String {
    match cause {
        Cause::GivenBack => "given back".to_owned(),
        cause => format!("lost: {}", Why(cause)),
    }
}
