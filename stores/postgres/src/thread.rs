//! The store's own thread: its connections live there, so that a blocked runtime of the user's starves nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tenure_core::{Fault, StoreError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A thread that drives one runtime until this is dropped.
#[derive(Debug)]
pub(crate) struct OwnThread {
    handle: Handle,
    /// Dropped with this, which ends the thread and closes its connections.
    _until: oneshot::Sender<()>,
}

impl OwnThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Fault::Internal`], not applied: the system gave no thread or no runtime.
    pub(crate) fn start() -> Result<Self, StoreError> {
        let failed = |what: &str, error: std::io::Error| {
            let message = format!("the PostgreSQL store could not start its {what}: {error}");
            StoreError::not_applied(Fault::Internal, message)
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed("runtime", error))?;
        let handle = runtime.handle().clone();
        let (until, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("tenure-postgres".to_owned())
            .spawn(move || {
                // Nothing is ever sent: dropping the other end is the sign.
                let _ended = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .map_err(|error| failed("thread", error))?;
        Ok(Self {
            handle,
            _until: until,
        })
    }

    /// Runs `work` on the thread. Dropping the answer ends the work where it stands.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Running<T> {
        Running(self.handle.spawn(work))
    }

    /// Leaves `work` to the thread: it goes on until it ends, or the thread does.
    pub(crate) fn leave(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// Work under way on the store's thread.
#[derive(Debug)]
pub(crate) struct Running<T>(JoinHandle<T>);

impl<T> Future for Running<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(|error| {
            // Not in the panic's own words: they may quote anything, a password too.
            let how = if error.is_panic() { "a panic" } else { "its end" };
            let message = format!("the PostgreSQL store's own thread gave the request up: {how}; ask again");
            StoreError::unknown(Fault::Internal, message)
        })
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        // A request that nobody waits for any more must not be sent seconds later.
        self.0.abort();
    }
}
