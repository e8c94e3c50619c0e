//! The store's own thread: the driver lives there, so that a blocked runtime of the user's starves nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long the thread lives on after the store is dropped, for the driver to say goodbye to the server.
const FAREWELL: Duration = Duration::from_millis(100);

/// A thread that drives one single-threaded runtime until this is dropped.
#[derive(Debug)]
pub(crate) struct OwnThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
}

impl OwnThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Fault::Internal`], not applied: the system gave no thread or no runtime.
    pub(crate) fn start() -> Result<Self, StoreError> {
        let failed = |what: &str, error: std::io::Error| {
            StoreError::not_applied(
                Fault::Internal,
                format!("the Redis store could not start its {what}: {error}"),
            )
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed("runtime", error))?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("tenure-redis".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    // Sent or dropped, both mean the end.
                    let _ended = stopped.await;
                    tokio::time::sleep(FAREWELL).await;
                });
                runtime.shutdown_background();
            })
            .map_err(|error| failed("thread", error))?;
        Ok(Self {
            handle,
            stop: Some(stop),
        })
    }

    /// Runs `work` on the thread. Dropping the answer ends the work where it stands.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Running<T> {
        Running(self.handle.spawn(work))
    }

    /// Runs `work` on the thread, and waits for nothing.
    pub(crate) fn leave(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Lets go of `value` on the thread: what the driver does when dropped needs its runtime.
    pub(crate) fn drop_there(&self, value: impl Send + 'static) {
        self.leave(async move { drop(value) });
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may be gone already; then there is nobody to stop.
            let _gone = stop.send(());
        }
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
            StoreError::unknown(
                Fault::Internal,
                format!("the Redis store's own thread gave the request up: {how}; ask again"),
            )
        })
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        // A request that nobody waits for any more must not be sent seconds later.
        self.0.abort();
    }
}
