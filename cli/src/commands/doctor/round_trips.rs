//! How long the store takes to answer.

use crate::output::short;
use std::time::{Duration, Instant};
use tenure::StoreError;
use tenure::contract::{Finding, Verdict};

/// Round trips that are measured, one after the other.
const ROUND_TRIPS: usize = 20;

/// How long the answers took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RoundTrips {
    p50: Duration,
    /// Of those that were slow.
    pub(super) p99: Duration,
}

impl RoundTrips {
    /// Asks again and again.
    ///
    /// # Errors
    /// The first that `ask` answers.
    pub(super) async fn measure<E>(mut ask: impl AsyncFnMut() -> Result<(), E>) -> Result<Self, E> {
        let mut took = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let began = Instant::now();
            ask().await?;
            took.push(began.elapsed());
        }
        took.sort_unstable();
        let at = |percent: usize| took.get((ROUND_TRIPS * percent).div_ceil(100) - 1).copied();
        Ok(Self {
            p50: at(50).unwrap_or_default(),
            p99: at(99).unwrap_or_default(),
        })
    }

    /// What they are worth, told of `subject`.
    pub(super) fn finding(self, subject: &str) -> Finding {
        Finding {
            subject: subject.to_owned(),
            verdict: Verdict::Good,
            detail: format!(
                "{ROUND_TRIPS} round trips: p50 {}, p99 {}",
                short(self.p50),
                short(self.p99)
            ),
            repair: None,
        }
    }
}

/// What it is worth that the store has not answered `subject`.
pub(super) fn unanswered(subject: &str, error: &StoreError) -> Finding {
    Finding {
        subject: subject.to_owned(),
        verdict: Verdict::Bad,
        detail: format!("{error} (waited at most {:?})", super::ANSWER_WAIT_MAX),
        repair: None,
    }
}
