//! What the log says of refusals: a refused writer may try a million times.

use std::time::Duration;
use tokio::time::Instant;

/// Shortest time between two warnings about refusals of one resource.
const WARNING_EVERY: Duration = Duration::from_secs(1);

/// What is refused: each is told of by itself, as a stale writer that never stops would hide the rest.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    Stale,
    OlderInside,
    Crowded,
    Unavailable,
}

/// Of one resource.
#[derive(Default)]
pub(super) struct Warnings([Limiter; 4]);

impl Warnings {
    /// One more refusal. How many of its kind there were since the last warning, if it is time for another.
    pub(super) fn count(&mut self, refused: Refused, now: Instant) -> Option<u64> {
        self.0[refused as usize].count(now)
    }
}

#[derive(Default)]
struct Limiter {
    warned_at: Option<Instant>,
    unwarned: u64,
}

impl Limiter {
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.unwarned = self.unwarned.saturating_add(1);
        let is_early = |warned| now.duration_since(warned) < WARNING_EVERY;
        if self.warned_at.is_some_and(is_early) {
            return None;
        }
        self.warned_at = Some(now);
        Some(std::mem::take(&mut self.unwarned))
    }
}
