//! The term that a fence has confirmed, and how old that news is.

use super::clock::Reading;
use std::time::Duration;
use tenure_core::Term;
use tokio::time::Instant;

/// How old the fence's last word is when it is asked again. Its mark may have been raised behind the gate's
/// back, as by an operator.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// How old it may become while the fence is asked: beyond it, requests wait for the answer. A second more
/// than above, so that those of a busy service never do.
const RELIED_ON_FOR: Duration = Duration::from_secs(2);

/// How long a request waits for that answer. Then it is let in: a store that does not answer must not stop
/// the term that it has confirmed.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The term that gets in.
pub(super) struct Holder {
    pub(super) term: Term,
    /// Since when the fence's last word counts.
    asked_at: Reading,
    /// Since when it is asked again.
    asking_since: Option<Reading>,
}

/// What is known of a holder.
pub(super) enum News {
    /// Enough to let it in.
    Fresh,
    /// The fence is to be asked again.
    Old,
    /// The fence is being asked; the answer is waited for until then.
    Coming { until: Instant },
}

impl Holder {
    pub(super) fn new(term: Term, asked_at: Reading) -> Self {
        Self {
            term,
            asked_at,
            asking_since: None,
        }
    }

    pub(super) fn news(&self, now: Reading) -> News {
        let (age, now) = (now.since(self.asked_at), now.at);
        match self.asking_since.map(|since| since.at + PATIENCE) {
            None if age >= ASKED_EVERY => News::Old,
            Some(until) if age >= RELIED_ON_FOR && now < until => News::Coming { until },
            None | Some(_) => News::Fresh,
        }
    }

    /// The fence is asked from now on. Whether this caller is to ask it.
    pub(super) fn begin_to_ask(&mut self, now: Reading) -> bool {
        let is_first = self.asking_since.is_none();
        self.asking_since.get_or_insert(now);
        is_first
    }

    /// Whether the fence is asked since just then.
    pub(super) fn is_asked_since(&self, then: Reading) -> bool {
        self.asking_since == Some(then)
    }

    /// The asking is over; the fence's last word counts from then on.
    pub(super) fn asked(&mut self, at: Reading) {
        self.asked_at = at;
        self.asking_since = None;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::{ASKED_EVERY, Holder, News, Reading};
    use std::time::Duration;
    use tenure_core::{FencingToken, LeaseName, Term};

    #[tokio::test(start_paused = true)]
    async fn what_a_fence_said_before_the_machine_slept_is_old() {
        let term = Term::new(LeaseName::new("nightly").unwrap(), FencingToken::new(7).unwrap());
        let asked_at = Reading::now();
        let holder = Holder::new(term, asked_at);
        let woken = |slept| Reading {
            since_boot: asked_at.since_boot + slept,
            ..asked_at
        };
        assert!(matches!(holder.news(woken(Duration::ZERO)), News::Fresh));
        assert!(matches!(holder.news(woken(ASKED_EVERY)), News::Old));
    }
}
