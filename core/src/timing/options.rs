use super::{Timing, TimingError, Violation};
use crate::Ttl;
use std::time::Duration;

/// Longest pause before the next try, unless another is given: a store that is back is not left alone for a
/// part of a long ttl, while others wait for what is to be released.
const RETRY_EVERY_MAX: Duration = Duration::from_secs(10);

/// A timing as somebody wrote it down; [`check`](Self::check) makes a [`Timing`] of it.
///
/// What is `None` is derived from the ttl.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimingOptions {
    /// How long a lease lasts from its last renewal. 100 ms ..= 24 h, whole milliseconds.
    pub ttl: Duration,
    /// From one renewal to the next. At least 1 ms; twice this and one time-out have room in what of the ttl
    /// is [trusted](Timing::trust). Default: a third of the ttl.
    ///
    /// A standby looks once per ttl if this divides the ttl; at most once per `ttl − renew_every` otherwise.
    pub renew_every: Option<Duration>,
    /// From a failed renewal or release to the next try. 1 ms ..= `renew_every`. Default: a thirtieth of the
    /// ttl, at most 10 s.
    pub retry_every: Option<Duration>,
    /// Longest wait for one answer. At least 1 ms; see `renew_every`. Default: a tenth of the ttl.
    pub request_timeout: Option<Duration>,
    /// From doubt to the deadline. From zero; a renewal interval, a time-out and this have room in what of
    /// the ttl is [trusted](Timing::trust). Default: a sixth of the ttl.
    pub grace: Option<Duration>,
    /// Within what time standbys spread their attempts after an expiry, and, 8 ms at most, after a release.
    /// At most a quarter of the ttl. Default: a fortieth of the ttl, at most 150 ms.
    pub spread: Option<Duration>,
    /// ρ: how much any clock may be too fast or too slow, in parts per million. At most 100,000.
    ///
    /// Default: 500, to which `ntp_adjtime(2)` limits the correction of the frequency. The length of a tick
    /// goes to 100,000: chrony takes out an offset by up to 83,333 ppm, unless it has `maxslewrate 500`, on
    /// servers and candidates. So does whatever slews a leap second or a wrong clock faster than this.
    pub clock_rate_error_ppm: u32,
    /// How far the store's clock may step in one ttl without harm; taken off the holder's trust. From zero to
    /// what the other inequalities leave. Default: a fiftieth of the ttl, at most 50 ms.
    pub step_allowance: Option<Duration>,
}

impl TimingOptions {
    /// The advised options for a ttl.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            renew_every: None,
            retry_every: None,
            request_timeout: None,
            grace: None,
            spread: None,
            clock_rate_error_ppm: 500,
            step_allowance: None,
        }
    }

    /// Checks every inequality.
    ///
    /// # Errors
    /// [`TimingError`] with **every** violation, not the first only. Nothing was started.
    pub fn check(&self) -> Result<Timing, TimingError> {
        let ttl = Ttl::try_from(self.ttl);
        // An impossible ttl is measured with the nearest possible one, so that the other mistakes show too.
        let nearest = ttl.unwrap_or(if self.ttl < Ttl::MIN.duration() {
            Ttl::MIN
        } else {
            Ttl::MAX
        });
        let whole = nearest.duration();
        let timing = Timing {
            ttl: nearest,
            renew_every: self.renew_every.unwrap_or(whole / 3),
            retry_every: self.retry_every.unwrap_or_else(|| {
                (whole / 30)
                    .min(RETRY_EVERY_MAX)
                    .min(self.renew_every.unwrap_or(Duration::MAX))
                    .max(Duration::from_millis(1))
            }),
            request_timeout: self.request_timeout.unwrap_or(whole / 10),
            grace: self.grace.unwrap_or(whole / 6),
            spread: self
                .spread
                .unwrap_or((whole / 40).min(Duration::from_millis(150))),
            clock_rate_error_ppm: self.clock_rate_error_ppm,
            step_allowance: self
                .step_allowance
                .unwrap_or((whole / 50).min(Duration::from_millis(50))),
        };
        let mut violations = Vec::new();
        if let Err(error) = ttl {
            violations.push(Violation::TtlOutOfRange(error));
        }
        inequalities(&timing, &mut violations);
        if violations.is_empty() {
            Ok(timing)
        } else {
            Err(TimingError(violations))
        }
    }
}

fn inequalities(timing: &Timing, violations: &mut Vec<Violation>) {
    const SHORTEST: Duration = Duration::from_millis(1);
    const RATE_ERROR_MAX_PPM: u32 = 100_000;
    let Timing {
        ttl,
        renew_every,
        retry_every,
        request_timeout,
        grace,
        spread,
        ..
    } = *timing;
    if timing.clock_rate_error_ppm > RATE_ERROR_MAX_PPM {
        violations.push(Violation::ClockRateError {
            ppm: timing.clock_rate_error_ppm,
        });
    }
    // An impossible rate is measured with the nearest possible one, so that the other mistakes show too.
    let nearest = Timing {
        clock_rate_error_ppm: timing.clock_rate_error_ppm.min(RATE_ERROR_MAX_PPM),
        ..*timing
    };
    let trust = nearest.trust(ttl);
    if renew_every < SHORTEST {
        violations.push(Violation::TooShort {
            what: "renewal interval",
            given: renew_every,
        });
    }
    if request_timeout < SHORTEST {
        violations.push(Violation::TooShort {
            what: "request time-out",
            given: request_timeout,
        });
    }
    if retry_every < SHORTEST || retry_every > renew_every {
        violations.push(Violation::RetryInterval {
            retry_every,
            renew_every,
        });
    }
    if renew_every >= ttl.duration() {
        violations.push(Violation::RenewalNotWithinTtl { renew_every, ttl });
    } else if renew_every.saturating_mul(2).saturating_add(request_timeout) > trust {
        violations.push(Violation::OneLostRenewalLosesTheLease {
            renew_every,
            request_timeout,
            trust,
        });
    }
    if renew_every.saturating_add(request_timeout).saturating_add(grace) > trust {
        violations.push(Violation::DoubtBeforeTheFirstRenewal {
            renew_every,
            request_timeout,
            grace,
            trust,
        });
    }
    if spread > ttl.duration() / 4 {
        violations.push(Violation::SpreadTooWide { spread, ttl });
    }
}
