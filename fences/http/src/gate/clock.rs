//! How old something is, also where the machine has slept since: what it goes by may have changed meanwhile.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::Instant;

/// A moment by both clocks: that of the timers, and one that goes on while the machine sleeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) since_boot: Duration,
}

impl Reading {
    pub(super) fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        Self {
            at: Instant::now(),
            since_boot: Duration::try_from(boot).expect("time since boot is no debt"),
        }
    }

    /// The time that has passed, by whichever clock says more: the timers' is the tests' own.
    pub(super) fn since(self, earlier: Self) -> Duration {
        let slept_too = self.since_boot.saturating_sub(earlier.since_boot);
        self.at.duration_since(earlier.at).max(slept_too)
    }
}
