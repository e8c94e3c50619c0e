//! Staying out after a failure, longer with each in a row.

use crate::arguments::{CareArguments, Restart};
use std::time::Duration;

/// How often the time is doubled at most: 64 times the first.
const DOUBLINGS_MAX: u32 = 6;

/// A command that has run so many times the first time begins anew.
const FORGIVEN_AFTER: u32 = 10;

/// What there is to do when a command has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// End with its code.
    End,
    /// Stay out so long, and campaign again.
    Again(Duration),
}

/// Counts failures.
pub(super) struct Cooldown {
    restart: Restart,
    first: Duration,
    failures: u32,
}

impl Cooldown {
    pub(super) fn new(care: &CareArguments) -> Self {
        Self {
            restart: care.restart,
            first: care.cooldown,
            failures: 0,
        }
    }

    /// After a command that has ended by itself with this code.
    pub(super) fn after_end(&mut self, code: u8, ran: Duration) -> Next {
        match (self.restart, code) {
            (Restart::No, _) | (Restart::OnFailure, 0) => Next::End,
            (Restart::Always, 0) => {
                self.failures = 0;
                Next::Again(self.first)
            }
            (Restart::OnFailure | Restart::Always, _) => Next::Again(self.after_failure(ran)),
        }
    }

    /// How long to stay out after a failure.
    pub(super) fn after_failure(&mut self, ran: Duration) -> Duration {
        if ran >= self.first.saturating_mul(FORGIVEN_AFTER) {
            self.failures = 0;
        }
        let out = self
            .first
            .saturating_mul(2_u32.pow(self.failures.min(DOUBLINGS_MAX)));
        self.failures = self.failures.saturating_add(1);
        out
    }

    /// Whether anything is run again.
    pub(super) fn restarts(&self) -> bool {
        self.restart != Restart::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cooldown(restart: Restart) -> Cooldown {
        Cooldown::new(&CareArguments {
            restart,
            cooldown: Duration::from_secs(1),
            ..CareArguments::default()
        })
    }

    #[test]
    fn failures_in_a_row_keep_out_ever_longer_but_not_for_ever() {
        let mut cooldown = cooldown(Restart::OnFailure);
        let mut out = || cooldown.after_failure(Duration::ZERO).as_secs();
        let seconds: Vec<u64> = (0..9).map(|_| out()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(cooldown.after_failure(Duration::from_secs(10)).as_secs(), 1);
    }

    #[test]
    fn the_longest_time_is_not_too_long_to_be_doubled() {
        let mut cooldown = cooldown(Restart::OnFailure);
        cooldown.first = Duration::MAX;
        for _ in 0..2 {
            assert_eq!(cooldown.after_failure(Duration::ZERO), Duration::MAX);
        }
    }

    #[test]
    fn only_what_was_asked_for_is_run_again() {
        let second = Next::Again(Duration::from_secs(1));
        for (restart, code, next) in [
            (Restart::No, 0, Next::End),
            (Restart::No, 7, Next::End),
            (Restart::OnFailure, 0, Next::End),
            (Restart::OnFailure, 7, second),
            (Restart::Always, 0, second),
            (Restart::Always, 7, second),
        ] {
            let mut cooldown = cooldown(restart);
            assert_eq!(
                cooldown.after_end(code, Duration::ZERO),
                next,
                "{restart:?} {code}"
            );
        }
    }
}
