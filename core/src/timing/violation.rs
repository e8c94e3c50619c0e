use super::promises::shown;
use crate::{Ttl, TtlError};
use std::fmt;
use std::time::Duration;

/// One inequality that a timing breaks.
///
/// Effect on authority: none; nothing was started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// The ttl is outside what any store keeps to.
    TtlOutOfRange(TtlError),
    /// The ttl is outside what this store keeps to.
    OutsideStoreRange {
        /// The ttl asked for.
        ttl: Ttl,
        /// The kind of store.
        store: &'static str,
        /// Its shortest ttl.
        ttl_min: Ttl,
        /// Its longest ttl.
        ttl_max: Ttl,
    },
    /// A duration under one millisecond.
    TooShort {
        /// Which one.
        what: &'static str,
        /// The duration.
        given: Duration,
    },
    /// The retry interval is under 1 ms or longer than the renewal interval.
    RetryInterval {
        /// The retry interval.
        retry_every: Duration,
        /// The renewal interval.
        renew_every: Duration,
    },
    /// The renewal interval is not shorter than the ttl: every term would expire.
    RenewalNotWithinTtl {
        /// The renewal interval.
        renew_every: Duration,
        /// The ttl.
        ttl: Ttl,
    },
    /// `2·renew_every + request_timeout` does not fit into the trusted time: one lost renewal ends the term.
    OneLostRenewalLosesTheLease {
        /// The renewal interval.
        renew_every: Duration,
        /// The request time-out.
        request_timeout: Duration,
        /// The trusted part of the ttl.
        trust: Duration,
    },
    /// `renew_every + request_timeout + grace` does not fit into the trusted time: a slow first renewal
    /// already brings doubt.
    DoubtBeforeTheFirstRenewal {
        /// The renewal interval.
        renew_every: Duration,
        /// The request time-out.
        request_timeout: Duration,
        /// The grace.
        grace: Duration,
        /// The trusted part of the ttl.
        trust: Duration,
    },
    /// The spread is more than a quarter of the ttl.
    SpreadTooWide {
        /// The spread.
        spread: Duration,
        /// The ttl.
        ttl: Ttl,
    },
    /// The clock-rate error is over 100,000 ppm.
    ClockRateError {
        /// Parts per million.
        ppm: u32,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TtlOutOfRange(error) => error.fmt(f),
            Self::OutsideStoreRange {
                ttl,
                store,
                ttl_min,
                ttl_max,
            } => {
                write!(
                    f,
                    "ttl {ttl} is outside {ttl_min} to {ttl_max}, the range of the {store} store"
                )
            }
            Self::TooShort { what, given } => write!(f, "the {what} {given:?} is below 1ms"),
            Self::RetryInterval {
                retry_every,
                renew_every,
            } => write!(
                f,
                "the retry interval {retry_every:?} is outside 1ms to {renew_every:?}, the renewal interval"
            ),
            Self::RenewalNotWithinTtl { renew_every, ttl } => write!(
                f,
                "renewing every {renew_every:?} is not within the ttl {ttl}; renew every {:?}",
                Duration::from_millis(ttl.as_millis() / 3)
            ),
            Self::OneLostRenewalLosesTheLease {
                renew_every,
                request_timeout,
                trust,
            } => write!(
                f,
                "two renewals of {} and a request of {} do not fit into the {} that may be trusted; raise the ttl or renew more \
                 often",
                shown(*renew_every),
                shown(*request_timeout),
                shown(*trust)
            ),
            Self::DoubtBeforeTheFirstRenewal {
                renew_every,
                request_timeout,
                grace,
                trust,
            } => write!(
                f,
                "a renewal after {}, a request of {} and a grace of {} do not fit into the {} that may be trusted; raise the \
                 ttl or shorten the grace",
                shown(*renew_every),
                shown(*request_timeout),
                shown(*grace),
                shown(*trust)
            ),
            Self::SpreadTooWide { spread, ttl } => {
                write!(
                    f,
                    "the spread {spread:?} is over {:?}, a quarter of the ttl",
                    ttl.duration() / 4
                )
            }
            Self::ClockRateError { ppm } => {
                write!(
                    f,
                    "a clock-rate error of {ppm} ppm is over 100000; 500 suits every disciplined clock"
                )
            }
        }
    }
}

/// Every inequality that a timing breaks.
///
/// Effect on authority: none; nothing was started.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TimingError(pub Vec<Violation>);

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TimingError {}
