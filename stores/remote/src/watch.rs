//! Watches that a task on a store's own thread reads.

use crate::thread::{OwnThread, Running};
use std::future::Future;
use std::sync::Arc;
use tenure_core::{Answer, Fault, StoreError, Watch, WatchEvent};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Events that may wait for a slow reader. When it is full the task waits, and takes nothing more from its
/// connection.
const EVENTS_WAITING_MAX: usize = 256;

/// What a watch tells: an error is the last.
pub type Told = Result<WatchEvent, StoreError>;

/// The places that a store has for watches; its clones share them.
#[derive(Clone, Debug)]
pub struct WatchPlaces {
    free: Arc<Semaphore>,
    most: usize,
}

impl WatchPlaces {
    /// So many at a time.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most)),
            most,
        }
    }

    /// One of them, for as long as it is kept. `place` is the store's location.
    ///
    /// # Errors
    /// [`Fault::Busy`], not applied: all are taken.
    pub fn take(&self, place: &str) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.free).try_acquire_owned().map_err(|_| {
            let message = format!(
                "{} watches of {place} are open already; end one, or watch a prefix instead of each name",
                self.most
            );
            StoreError::not_applied(Fault::Busy, message)
        })
    }
}

/// A watch whose events a task on the store's thread reads. Dropping it ends the task.
#[derive(Debug)]
pub struct ReadWatch {
    events: mpsc::Receiver<Told>,
    place: String,
    _reader: Running<()>,
    _permit: OwnedSemaphorePermit,
}

impl ReadWatch {
    /// Has `read` hand events on from now, until it ends.
    #[must_use]
    pub fn start<F>(
        thread: &OwnThread,
        permit: OwnedSemaphorePermit,
        place: String,
        read: impl FnOnce(mpsc::Sender<Told>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        Self {
            events,
            place,
            _reader: thread.run(read(sender)),
            _permit: permit,
        }
    }
}

impl Watch for ReadWatch {
    fn next(&mut self) -> Answer<'_, Told> {
        Box::pin(async move {
            self.events.recv().await.unwrap_or_else(|| {
                let message = format!(
                    "the watch at {} is over: its reader ended; start a new one, then look again",
                    self.place
                );
                Err(StoreError::not_applied(Fault::Unreachable, message))
            })
        })
    }
}
