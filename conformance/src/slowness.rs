use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::{Fault, StoreError};

/// Shortest time that a store gives its server for a request before it says that there was no answer. What
/// comes sooner is the store's own doing, however busy the machine.
const SLOW_LEAST: Duration = Duration::from_millis(500);

/// Shortest time that a store waits for who has something locked: PostgreSQL's is a fortieth of the shortest
/// ttl.
const BUSY_LEAST: Duration = Duration::from_millis(5);

/// Whether a request of a case failed because the server did not answer in its time: that is said of the
/// machine, and not of the store.
#[derive(Clone, Default)]
pub(crate) struct Slowness(Arc<AtomicBool>);

impl Slowness {
    /// Notes it if this error, after so long, says so.
    pub fn note(&self, error: &StoreError, after: Duration) {
        let is_of_a_slow_server = match error.fault {
            Fault::TimedOut | Fault::Unreachable => after >= SLOW_LEAST,
            Fault::Busy => after >= BUSY_LEAST,
            Fault::Full
            | Fault::AnotherStore
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

#[cfg(test)]
mod tests {
    use super::{BUSY_LEAST, SLOW_LEAST};
    use crate::Fixture;
    use crate::model::ModelSubject;
    use std::sync::Arc;
    use std::time::Duration;
    use tenure_core::{Fault, StoreError};

    /// Whether a request that fails like this, after so long, is the slow server's. Time passes for nothing
    /// else.
    async fn is_noted(by: Fault, after: Duration) -> bool {
        let fixture = Arc::new(Fixture::new(ModelSubject::new()));
        let asked = Arc::clone(&fixture);
        let case = tokio::spawn(async move {
            let answer = async {
                tokio::time::sleep(after).await;
                Err(StoreError::unknown(by, "no answer"))
            };
            asked.first().answered::<()>("look at", "job", answer).await;
        });
        assert!(case.await.is_err(), "an error fails the case");
        fixture.slowness().is_noted()
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_the_slow_servers_if_it_came_as_late_as_only_a_slow_server_lets_it() {
        for (fault, least) in [
            (Fault::Busy, BUSY_LEAST),
            (Fault::TimedOut, SLOW_LEAST),
            (Fault::Unreachable, SLOW_LEAST),
        ] {
            let soon = least - Duration::from_millis(1);
            assert!(!is_noted(fault, Duration::ZERO).await, "{fault:?} at once");
            assert!(!is_noted(fault, soon).await, "{fault:?} after {soon:?}");
            assert!(is_noted(fault, least).await, "{fault:?} after {least:?}");
        }
    }
}
