use crate::driver::BackOff;
use std::time::Duration;
use tenure_core::{Timing, TimingError, TimingOptions};

/// When locks end, are renewed, and are looked for, as somebody wrote it down; [`check`](Self::check) makes a
/// [`LockTiming`] of it.
///
/// In the words of [`TimingOptions`]. What a description of such locks may call otherwise is here:
///
/// | there | here |
/// |---|---|
/// | `lockTtlMillis` | [`ttl`](Self::ttl) |
/// | `lockTtlBufferCoefficient` | [`step_allowance`](Self::step_allowance), as a part of the ttl |
/// | `beatIntervalMillis` | [`renew_every`](Self::renew_every) |
/// | `baseBackoffMillis`, `maxDelay` | [`back_off_base`](Self::back_off_base), [`back_off_max`](Self::back_off_max) |
/// | `maxJitter` | [`spread`](Self::spread) |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockTimingOptions {
    /// How long a lock lasts from its last renewal. 100 ms ..= 24 h. Default: 30 s.
    pub ttl: Duration,
    /// From one renewal to the next; each is one of all held locks. Default: a third of the ttl.
    pub renew_every: Option<Duration>,
    /// How far the store's clock may step in one ttl without harm. It is taken off the holder's trust, never
    /// added to the record. From zero to what the renewals leave: two of them and a time-out of a tenth of
    /// the ttl, which is 23 % of the ttl where they are a third of it. Default: a tenth of the ttl.
    pub step_allowance: Option<Duration>,
    /// Within what time waiters spread their attempts after an expiry and, 8 ms at most, after a release, and
    /// what each pause of theirs is longer by at most, drawn anew each time. At most a quarter of the ttl.
    /// Default: a fortieth of the ttl, at most 50 ms.
    pub spread: Option<Duration>,
    /// First pause of a waiter that the store cannot wake; each further one is twice as long. A watch that
    /// broke begins anew after the same pauses, of 10 s at most. Less than 1 ms counts as 1 ms. Default:
    /// 50 ms.
    pub back_off_base: Duration,
    /// Longest such pause without the spread. At least the base counts. Default: 1 s.
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
            renew_every: None,
            step_allowance: None,
            spread: None,
            back_off_base: Duration::from_millis(50),
            back_off_max: Duration::from_secs(1),
            clock_rate_error_ppm: TimingOptions::new(ttl).clock_rate_error_ppm,
        }
    }

    /// Checks every inequality.
    ///
    /// # Errors
    /// [`TimingError`] with every violation. Nothing was started.
    pub fn check(&self) -> Result<LockTiming, TimingError> {
        let spread = self
            .spread
            .unwrap_or((self.ttl / 40).min(Duration::from_millis(50)));
        let timing = TimingOptions {
            renew_every: self.renew_every,
            spread: Some(spread),
            step_allowance: Some(self.step_allowance.unwrap_or(self.ttl / 10)),
            clock_rate_error_ppm: self.clock_rate_error_ppm,
            ..TimingOptions::new(self.ttl)
        }
        .check()?;
        let base = self.back_off_base.max(Duration::from_millis(1));
        Ok(LockTiming {
            timing,
            back_off: BackOff {
                base,
                jitter_max: spread,
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
    /// The timing of each lease: its ttl, its renewals, what the holder trusts. `explain()` says what
    /// it promises.
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
    fn the_step_allowance_is_taken_off_what_the_holder_trusts() {
        let trusted = |step_allowance| {
            let options = LockTimingOptions {
                step_allowance,
                ..LockTimingOptions::default()
            };
            let timing = options.check().unwrap();
            timing.lease().trust(Ttl::from_secs(30).unwrap())
        };
        for seconds in [1, 2, 3] {
            let allowance = Duration::from_secs(seconds);
            assert_eq!(
                trusted(Some(Duration::ZERO)) - trusted(Some(allowance)),
                allowance
            );
        }
        assert_eq!(trusted(None), trusted(Some(Duration::from_secs(3))));
        let slewed = LockTimingOptions {
            clock_rate_error_ppm: 80_000,
            ..LockTimingOptions::default()
        };
        let slewed = slewed.check().unwrap_err().to_string();
        assert!(slewed.contains("trust"), "{slewed}");
    }
}
