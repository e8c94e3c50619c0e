use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;

/// The clock of a model store: milliseconds that never fall.
#[derive(Clone, Debug)]
pub enum ModelClock {
    /// Runs with tokio's time, which a test may pause, from this number of milliseconds on.
    Running {
        /// When it showed `start_ms`.
        since: Instant,
        /// What it showed first.
        start_ms: u64,
    },
    /// Shows what it was set to: a simulator moves it.
    Settable(Arc<AtomicU64>),
}

impl ModelClock {
    /// A running clock that shows a plausible time of day, so that tokens look as they do in a real store.
    #[must_use]
    pub fn running() -> Self {
        Self::Running {
            since: Instant::now(),
            start_ms: 1_700_000_000_000,
        }
    }

    /// A clock that shows `now_ms` until it is set.
    #[must_use]
    pub fn settable(now_ms: u64) -> Self {
        Self::Settable(Arc::new(AtomicU64::new(now_ms)))
    }

    /// What it shows, in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match self {
            Self::Running { since, start_ms } => {
                let passed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                start_ms.saturating_add(passed)
            }
            Self::Settable(now_ms) => now_ms.load(Ordering::SeqCst),
        }
    }

    /// Moves a settable clock forward, for every store that shares it. A running clock moves by itself.
    pub fn advance(&self, milliseconds: u64) {
        match self {
            Self::Running { .. } => {}
            Self::Settable(now_ms) => {
                now_ms.fetch_add(milliseconds, Ordering::SeqCst);
            }
        }
    }
}
