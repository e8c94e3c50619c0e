use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::{Fault, StoreError};

/// Shortest time that a store gives its server for a request before it says that there was no answer. What comes sooner is the
/// store's own doing, however busy the machine.
const SLOW_LEAST: Duration = Duration::from_millis(500);

/// Shortest time that a store waits for who has something locked: PostgreSQL's is a fortieth of the shortest ttl.
const BUSY_LEAST: Duration = Duration::from_millis(5);

/// Whether a request of a case failed because the server did not answer in its time: that is said of the machine, and not of the store.
#[derive(Clone, Default)]
pub(crate) struct Slowness(Arc<AtomicBool>);

impl Slowness {
    /// Notes it if this error, after so long, says so.
    pub fn note(&self, error: &StoreError, after: Duration) {
        let is_of_a_slow_server = match error.fault {
            Fault::TimedOut | Fault::Unreachable => after >= SLOW_LEAST,
            Fault::Busy => after >= BUSY_LEAST,
            Fault::Full
            | Fault::Unauthenticated
            | Fault::Forbidden
            | Fault::ReadOnly
            | Fault::Unreadable
            | Fault::Unsupported
            | Fault::Invalid
            | Fault::Internal => false,
        };
        if is_of_a_slow_server {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
