//! Durations as the log has them: plain numbers, which a collector compares and adds, under names that end
//! with `_ms`.

use std::time::Duration;

/// Whole milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds to a thousandth: of a round trip they are few.
pub(crate) fn exact_milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
