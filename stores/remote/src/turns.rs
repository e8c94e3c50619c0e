//! Claims that wait for each other.

use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a claim waits for its turn: longer than one before it waits for a transaction, and no part of the
/// time that it may take by itself.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);

/// Turns of claims: there are as many as a fence has connections for them, since each may wait for seconds.
///
/// Whoever waited in line on a connection itself, and not here, would come to ask when its time is as good as
/// over, and give a sound connection up for that.
#[derive(Debug)]
pub struct ClaimTurns(Semaphore);

impl ClaimTurns {
    /// So many at once.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self(Semaphore::new(connections))
    }

    /// Waits for a turn, which lasts until it is dropped.
    ///
    /// # Errors
    /// [`Fault::Busy`], not applied: others kept it waiting for too long.
    ///
    /// # Panics
    /// Never: nobody closes the semaphore.
    pub async fn begin(&self, subject: &str, place: &str) -> Result<SemaphorePermit<'_>, StoreError> {
        match tokio::time::timeout(TURN_WAIT_MAX, self.0.acquire()).await {
            Ok(turn) => Ok(turn.expect("the semaphore is never closed")),
            Err(_late) => {
                let message = format!(
                    "{subject} at {place}: other claims by this fence have kept this one waiting for {TURN_WAIT_MAX:?}, most likely \
                     for open transactions of earlier terms; claim again"
                );
                Err(StoreError::not_applied(Fault::Busy, message))
            }
        }
    }
}
