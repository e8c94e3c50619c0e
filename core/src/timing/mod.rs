//! How long, how often, how soon: the timing of a lease, checked as a whole.

mod options;
mod promises;
mod violation;

pub use options::TimingOptions;
pub use promises::Promises;
pub use violation::{TimingError, Violation};

use crate::{StoreTraits, Ttl};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Within what time standbys answer a release at most: they are woken at once, and spread a little.
const WAKE_SPREAD_MAX: Duration = Duration::from_millis(8);

/// Longest pause of a campaign between two tries on a store that fails: long enough to spare a store that
/// is ill, short enough not to be the outage.
const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// One million: rates are in parts per million.
const MILLION: u128 = 1_000_000;

/// A timing whose inequalities all hold.
///
/// Made from [`TimingOptions`]; there is no other way, so that an engine never runs on an unsound one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timing {
    pub(crate) ttl: Ttl,
    pub(crate) renew_every: Duration,
    pub(crate) retry_every: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) spread: Duration,
    pub(crate) clock_rate_error_ppm: u32,
    pub(crate) step_allowance: Duration,
}

impl Timing {
    /// The advised timing for this ttl: renewal at a third, requests within a tenth, doubt a sixth before the
    /// deadline. Sound for every ttl.
    ///
    /// Source: "lease at least three renewals" of the pattern's description, and etcd, Consul and Curator,
    /// which all renew at a third.
    #[must_use]
    pub fn of(ttl: Ttl) -> Self {
        TimingOptions::new(ttl.duration())
            .check()
            .expect("the advised timing is sound for every ttl, by test")
    }

    /// 30 s, renewed every 10 s: for nightly batches and settlements, where a minute matters less than a
    /// needless change of leader.
    ///
    /// Source: the description of leader election for batch jobs on MongoDB that Tenure grew from; Patroni's
    /// default ttl is 30 s and its loop 10 s, too.
    #[must_use]
    pub fn batch() -> Self {
        TimingOptions {
            renew_every: Some(Duration::from_secs(10)),
            ..TimingOptions::new(Duration::from_secs(30))
        }
        .check()
        .expect("the batch preset is sound, by test")
    }

    /// 15 s, doubt at 10 s, a renewal every 2 s: for controllers.
    ///
    /// Source: client-go's defaults `LeaseDuration` 15 s, `RenewDeadline` 10 s, `RetryPeriod` 2 s.
    #[must_use]
    pub fn controller() -> Self {
        TimingOptions {
            renew_every: Some(Duration::from_secs(2)),
            retry_every: Some(Duration::from_secs(1)),
            request_timeout: Some(Duration::from_secs(3)),
            grace: Some(Duration::from_secs(5)),
            ..TimingOptions::new(Duration::from_secs(15))
        }
        .check()
        .expect("the controller preset is sound, by test")
    }

    /// The shortest advisable timing for a store whose slow requests take `round_trip` (a p99): renewal at
    /// least ten round trips, lease at least three renewals, and never under a second. For a store so slow
    /// that this would be more than a day it is a day, which is too short for it.
    ///
    /// Source: the rules of thumb in the pattern's description.
    #[must_use]
    pub fn advised(round_trip: Duration) -> Self {
        const SHORTEST: Duration = Duration::from_secs(1);
        let ttl = round_trip.saturating_mul(10 * 3).max(SHORTEST);
        // Up to whole 100 ms: an advice with more digits would pretend to a precision that no network has.
        let hundreds = ttl
            .as_millis()
            .div_ceil(100)
            .min(u128::from(Ttl::MAX.as_millis()) / 100);
        let ttl = Ttl::from_millis(u64::try_from(hundreds).unwrap_or(u64::MAX) * 100).unwrap_or(Ttl::MAX);
        Self::of(ttl)
    }

    /// The ttl asked for.
    #[must_use]
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// From the sending of one renewal to the sending of the next.
    #[must_use]
    pub fn renew_every(&self) -> Duration {
        self.renew_every
    }

    /// From a failed request to the next try; the base of the back-off of a standby.
    #[must_use]
    pub fn retry_every(&self) -> Duration {
        self.retry_every
    }

    /// Between what two pauses that of a campaign after a failure is drawn, with so many failures in a row
    /// before it: from [`retry_every`](Self::retry_every) up to twice that with each of them, 10 s and the
    /// ttl at most. Where even `retry_every` is longer, it is that.
    #[must_use]
    pub fn back_off(&self, failures: u32) -> RangeInclusive<Duration> {
        let base = self.retry_every;
        let cap = BACK_OFF_MAX.min(self.ttl.duration()).max(base);
        base..=base.saturating_mul(1_u32 << failures.min(16)).min(cap)
    }

    /// Longest wait for one answer.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// From doubt to the deadline: the time in which running work is stopped.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// Within what time standbys spread their attempts after an expiry.
    #[must_use]
    pub fn spread(&self) -> Duration {
        self.spread
    }

    /// Within what time standbys that a release has woken spread their attempts: 8 ms, and at most the
    /// [spread](Self::spread).
    #[must_use]
    pub fn wake_spread(&self) -> Duration {
        self.spread.min(WAKE_SPREAD_MAX)
    }

    /// The same timing for a candidate that nobody else is woken with: it spreads nothing.
    #[must_use]
    pub fn without_spread(self) -> Self {
        Self {
            spread: Duration::ZERO,
            ..self
        }
    }

    /// ρ: how much any clock may be too fast or too slow, in parts per million.
    #[must_use]
    pub fn clock_rate_error_ppm(&self) -> u32 {
        self.clock_rate_error_ppm
    }

    /// How far the store's clock may step in one ttl without harm.
    #[must_use]
    pub fn step_allowance(&self) -> Duration {
        self.step_allowance
    }

    /// How long a holder may trust a lease, counted from before its request was **sent**:
    /// `granted · (1 − 2ρ) − step allowance`.
    ///
    /// 2ρ and not ρ: our clock may be slow by ρ while the store's is fast by ρ.
    #[must_use]
    pub fn trust(&self, granted: Ttl) -> Duration {
        granted
            .duration()
            .saturating_sub(self.drift(granted, MILLION))
            .saturating_sub(self.step_allowance)
    }

    /// How long a lease of `granted` can last by our clock, if nobody renews it: `granted·(1 + ρ)/(1 − ρ) +
    /// step allowance`, as our clock may be fast by ρ while the store's is slow by ρ.
    pub(crate) fn lasts_at_most(&self, granted: Ttl) -> Duration {
        let slowest = MILLION - u128::from(self.clock_rate_error_ppm);
        granted.duration() + self.drift(granted, slowest) + self.step_allowance
    }

    /// By what two clocks can differ while `granted` passes on one that ticks `rate` times in a million.
    fn drift(&self, granted: Ttl, rate: u128) -> Duration {
        let nanoseconds = granted.duration().as_nanos();
        let drift = (nanoseconds * 2 * u128::from(self.clock_rate_error_ppm)).div_ceil(rate);
        Duration::from_nanos(u64::try_from(drift).unwrap_or(u64::MAX))
    }

    /// After what time, counted from the sending of a request, a lease of `granted` has surely expired in
    /// the store, if nobody renewed it and the request took at most the request time-out.
    pub(crate) fn surely_expired(&self, granted: Ttl) -> Duration {
        self.lasts_at_most(granted) + self.request_timeout
    }

    /// Whether a store keeps to this ttl.
    ///
    /// # Errors
    /// [`TimingError`] with the store's range. Nothing was started.
    pub fn fits(&self, store: &StoreTraits) -> Result<(), TimingError> {
        if (store.ttl_min..=store.ttl_max).contains(&self.ttl) {
            return Ok(());
        }
        Err(TimingError(vec![Violation::OutsideStoreRange {
            ttl: self.ttl,
            store: store.kind,
            ttl_min: store.ttl_min,
            ttl_max: store.ttl_max,
        }]))
    }

    /// What this timing promises, for people.
    #[must_use]
    pub fn explain(&self) -> Promises {
        Promises::of(self)
    }
}
