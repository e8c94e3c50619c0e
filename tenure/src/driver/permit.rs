//! How many a process may hold at once.

use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// A bounded number of [`Permit`]s.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    used: Arc<AtomicU64>,
    max: u64,
}

/// One of a bounded number; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<AtomicU64>);

impl Permits {
    pub(crate) fn new(max: u64) -> Self {
        Self {
            used: Arc::new(AtomicU64::new(0)),
            max,
        }
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// `None` where all are used.
    pub(crate) fn take(&self) -> Option<Permit> {
        let one_more = |used| (used < self.max).then_some(used + 1);
        self.used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more)
            .ok()
            .map(|_| Permit(self.used.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
