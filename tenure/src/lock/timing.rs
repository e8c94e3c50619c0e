use crate::driver::BackOff;
use std::time::Duration;
use tenure_core::{Timing, TimingError, TimingOptions};

/// When locks end, are extended, and are looked for, as somebody wrote it down; [`check`](Self::check) makes
/// a [`LockTiming`] of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockTimingOptions {
    /// How long a lock lasts from its last extension, as `lockTtlMillis`. 100 ms ..= 24 h. Default: 30 s.
    pub ttl: Duration,
    /// Percent of the ttl that is kept as a margin for steps of the store's clock, as
    /// `lockTtlBufferCoefficient`. It is taken off the holder's side, never added to the record. From 0 to
    /// what the beats leave: two of them and a time-out of a tenth of the ttl, which is 23 with the default
    /// beat. Default: 10.
    pub buffer_percent: u8,
    /// From one beat to the next, which extends every held lock, as `beatIntervalMillis`. Default: a third of
    /// the ttl.
    pub beat_every: Option<Duration>,
    /// First pause of a waiter that the store cannot wake, as `baseBackoffMillis`; each further one is twice
    /// as long. A watch that broke begins anew after the same pauses, of 10 s at most. Less than 1 ms counts
    /// as 1 ms. Default: 50 ms.
    pub back_off_base: Duration,
    /// What each such pause is longer by at most, drawn anew each time, and within what time waiters spread
    /// their attempts after an expiry and, 8 ms at most, after a release, as `maxJitter`. At most a quarter
    /// of the ttl. Default: 50 ms, and at most a fortieth of the ttl.
    pub jitter_max: Option<Duration>,
    /// Longest such pause without the jitter, as `maxDelay`. At least the base counts. Default: 1 s.
    pub back_off_max: Duration,
    /// How much any clock may be too fast or too slow, in parts per million, as in [`TimingOptions`].
    /// Default: 500.
    pub clock_rate_error_ppm: u32,
}

impl Default for LockTimingOptions {
    fn default() -> Self {
        Self::new(Duration::from_secs(30))
    }
}

impl LockTimingOptions {
    /// The advised options for a ttl.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            buffer_percent: 10,
            beat_every: None,
            back_off_base: Duration::from_millis(50),
            jitter_max: None,
            back_off_max: Duration::from_secs(1),
            clock_rate_error_ppm: TimingOptions::new(ttl).clock_rate_error_ppm,
        }
    }

    /// Checks every inequality.
    ///
    /// # Errors
    /// [`TimingError`] with every violation. Nothing was started.
    pub fn check(&self) -> Result<LockTiming, TimingError> {
        let jitter_max = self
            .jitter_max
            .unwrap_or((self.ttl / 40).min(Duration::from_millis(50)));
        let timing = TimingOptions {
            renew_every: self.beat_every,
            spread: Some(jitter_max),
            step_allowance: Some((self.ttl / 100).saturating_mul(u32::from(self.buffer_percent))),
            clock_rate_error_ppm: self.clock_rate_error_ppm,
            ..TimingOptions::new(self.ttl)
        }
        .check()?;
        let base = self.back_off_base.max(Duration::from_millis(1));
        Ok(LockTiming {
            timing,
            back_off: BackOff {
                base,
                jitter_max,
                pause_max: self.back_off_max.max(base),
            },
        })
    }
}

/// A timing of locks whose inequalities all hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockTiming {
    timing: Timing,
    back_off: BackOff,
}

impl Default for LockTiming {
    fn default() -> Self {
        LockTimingOptions::default()
            .check()
            .expect("the advised timing is sound, by test")
    }
}

impl LockTiming {
    /// The timing of each lease: its ttl, its beat, what the holder trusts. `explain()` says what it
    /// promises.
    #[must_use]
    pub fn lease(&self) -> &Timing {
        &self.timing
    }

    /// The same where nobody else is woken by what wakes this one.
    pub(super) fn of_one_in_turn(self) -> Self {
        Self {
            timing: self.timing.without_spread(),
            ..self
        }
    }

    pub(super) fn back_off(&self) -> BackOff {
        self.back_off
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::LockTimingOptions;
    use std::time::Duration;
    use tenure_core::Ttl;

    #[test]
    fn the_buffer_is_taken_off_what_the_holder_trusts() {
        let trusted = |buffer_percent| {
            let ttl = Duration::from_secs(30);
            let options = LockTimingOptions {
                buffer_percent,
                ..LockTimingOptions::new(ttl)
            };
            options
                .check()
                .unwrap()
                .lease()
                .trust(Ttl::from_secs(30).unwrap())
        };
        for percent in [1, 5, 10] {
            let buffer = Duration::from_millis(300) * u32::from(percent);
            assert_eq!(trusted(0) - trusted(percent), buffer, "{percent} %");
        }
        let slewed = LockTimingOptions {
            clock_rate_error_ppm: 80_000,
            ..LockTimingOptions::default()
        };
        let slewed = slewed.check().unwrap_err().to_string();
        assert!(slewed.contains("trust"), "{slewed}");
        let default = LockTimingOptions::default().check().unwrap();
        assert_eq!(default.lease().trust(Ttl::from_secs(30).unwrap()), trusted(10));
    }
}
