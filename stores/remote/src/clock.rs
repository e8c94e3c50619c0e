//! A server's clock beside ours, as far as one request can tell. Ours decides nothing: it is only the measure.

use std::time::{SystemTime, UNIX_EPOCH};

/// Servers whose clocks differ by more shift every expiry by as much when another one judges it.
pub const SKEW_MAX_MS: i64 = 500;

/// How far a server's clock is ahead of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// If the server looked at its clock in the middle of the request, which is the best guess.
    pub ms: i64,
    /// So much more or less it may be: half of the time that the request took, which may have stalled on either way.
    pub doubt_ms: i64,
}

impl Ahead {
    /// Of a server that shows `theirs_ms` in an answer that has just come, to what was sent at `sent_ms`; in milliseconds since 1970.
    #[must_use]
    pub fn of(theirs_ms: i64, sent_ms: i64) -> Self {
        Self::between(theirs_ms, sent_ms, now_ms())
    }

    fn between(theirs_ms: i64, sent_ms: i64, answered_ms: i64) -> Self {
        Self {
            ms: theirs_ms - i64::midpoint(sent_ms, answered_ms),
            doubt_ms: (answered_ms - sent_ms).unsigned_abs().div_ceil(2).cast_signed(),
        }
    }

    /// Whether the clocks are too far apart, wherever the request lost its time.
    #[must_use]
    pub const fn is_too_far(self) -> bool {
        self.ms.saturating_abs() > SKEW_MAX_MS + self.doubt_ms
    }

    /// In words, of a server that is asked alone.
    #[must_use]
    pub fn told(self) -> String {
        let Self { ms, doubt_ms } = self;
        format!("the server's is {ms} ms ahead of ours, give or take {doubt_ms} ms (which decides nothing)")
    }
}

/// By how much clocks differ at least, wherever the requests lost their time; 0 of fewer than two.
#[must_use]
pub fn apart_at_least_ms(clocks: &[Ahead]) -> i64 {
    let latest = clocks.iter().map(|clock| clock.ms - clock.doubt_ms).max();
    let earliest = clocks.iter().map(|clock| clock.ms + clock.doubt_ms).min();
    let apart = latest.zip(earliest).map(|(latest, earliest)| latest - earliest);
    apart.unwrap_or_default().max(0)
}

/// This machine's wall clock, in milliseconds since 1970; only ever shown.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Ahead, SKEW_MAX_MS, apart_at_least_ms};

    /// The server looked as soon as it was asked, or just before it answered: both are the same clock.
    #[test]
    fn request_that_stalls_makes_no_clock_wrong() {
        for theirs_ms in [10_000, 13_000] {
            let stalled = Ahead::between(theirs_ms, 10_000, 13_000);
            assert!(
                stalled.ms.abs() > SKEW_MAX_MS && !stalled.is_too_far(),
                "{stalled:?}"
            );
            let quick = Ahead::between(10_000, 9_999, 10_001);
            assert_eq!(apart_at_least_ms(&[quick, stalled]), 0);
        }
    }

    #[test]
    fn clock_that_is_wrong_is_so_also_in_the_answer_to_a_request_that_stalled() {
        for theirs_ms in [10_000 - SKEW_MAX_MS - 2, 13_000 + SKEW_MAX_MS + 2] {
            let wrong = Ahead::between(theirs_ms, 10_000, 13_000);
            assert!(wrong.is_too_far(), "{wrong:?}");
            assert!(apart_at_least_ms(&[wrong, Ahead::between(10_000, 10_000, 10_000)]) > SKEW_MAX_MS);
        }
    }
}
