//! What the log says of refusals: a refused writer may try a million times.

use std::time::Duration;
use tokio::time::Instant;

/// Shortest time between two warnings about refusals of one kind.
const WARNING_EVERY: Duration = Duration::from_secs(1);

/// What is refused: each is told of by itself, as one that never stops would hide the rest. What a fence
/// refuses is told of by the fence, also where it was refused by what that has told before.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    OlderInside,
    Crowded,
    Unavailable,
}

/// Of all resources of a gate.
#[derive(Default)]
pub(super) struct Warnings([Limiter; 3]);

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
