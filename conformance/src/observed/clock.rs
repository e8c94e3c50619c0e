use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure_core::{Clock, Moment};
use tokio::time::Instant;

/// One million: rates are in parts per million.
const MILLION: i128 = 1_000_000;

/// The clock of one observer.
#[derive(Clone, Debug)]
pub enum ObserverClock {
    /// Runs with tokio's time, which a test may pause, too fast or too slow.
    Running {
        /// When it showed its origin.
        since: Instant,
        /// How much too fast it is, in parts per million; negative: too slow.
        fast_by_ppm: i32,
    },
    /// Shows the moment of this many nanoseconds: a simulator moves it.
    Settable(Arc<AtomicU64>),
}

impl ObserverClock {
    /// A running clock that is this much too fast, or, if negative, too slow.
    #[must_use]
    pub fn running(fast_by_ppm: i32) -> Self {
        Self::Running {
            since: Instant::now(),
            fast_by_ppm,
        }
    }

    /// A clock that shows `now` until it is set.
    #[must_use]
    pub fn settable(now: Moment) -> Self {
        Self::Settable(Arc::new(AtomicU64::new(now.as_nanos())))
    }

    /// Sets a settable clock, for everybody who shares it. A running clock moves by itself.
    pub fn set(&self, now: Moment) {
        match self {
            Self::Running { .. } => {}
            Self::Settable(nanoseconds) => nanoseconds.store(now.as_nanos(), Ordering::SeqCst),
        }
    }
}

impl Clock for ObserverClock {
    fn now(&self) -> Moment {
        match self {
            Self::Running { since, fast_by_ppm } => {
                let passed = i128::try_from(since.elapsed().as_nanos()).unwrap_or(i128::MAX / (2 * MILLION));
                let shown = passed * (MILLION + i128::from(*fast_by_ppm)) / MILLION;
                Moment::from_nanos(u64::try_from(shown).unwrap_or(u64::MAX))
            }
            Self::Settable(nanoseconds) => Moment::from_nanos(nanoseconds.load(Ordering::SeqCst)),
        }
    }
}
