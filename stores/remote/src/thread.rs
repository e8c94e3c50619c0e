//! A store's own thread: its connections live there, so that a blocked runtime of the user's starves nothing.

use crate::pulse::Pulse;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long the thread lives on after the store is dropped, for the driver to say goodbye to the server.
const FAREWELL: Duration = Duration::from_millis(100);

/// The system that a thread talks to: its name for people, and the thread's for the operating system.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// As in a sentence: `MongoDB`.
    pub name: &'static str,
    /// As in `top`: `tenure-mongodb`; 15 bytes at most are shown.
    pub thread: &'static str,
}

/// A thread that drives one single-threaded runtime until this is dropped. Dropping waits for nothing.
#[derive(Debug)]
pub struct OwnThread {
    system: System,
    handle: Handle,
    pulse: Pulse,
    /// Dropped with this, which ends the thread.
    _until: oneshot::Sender<()>,
}

impl OwnThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Fault::Internal`], not applied: the operating system gave no thread or no runtime.
    pub fn start(system: System) -> Result<Self, StoreError> {
        let failed = |what: &str, error: io::Error| {
            let message = format!("the {} store could not start its {what}: {error}", system.name);
            StoreError::not_applied(Fault::Internal, message)
        };
        let (until, ended) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        // The runtime is made there, not here and handed over: where no thread is to be had, it would be
        // dropped here, which panics on a runtime of the caller's.
        let thread = move || match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let _ = tell.send(Ok(runtime.handle().clone()));
                runtime.block_on(async {
                    // Nothing is ever sent: dropping the other end is the sign.
                    let _ended = ended.await;
                    tokio::time::sleep(FAREWELL).await;
                });
                runtime.shutdown_background();
            }
            Err(error) => drop(tell.send(Err(error))),
        };
        std::thread::Builder::new()
            .name(system.thread.to_owned())
            .spawn(thread)
            .map_err(|error| failed("thread", error))?;
        let gone = |_| Err(io::Error::other("its thread ended before it had one"));
        let handle = told
            .recv()
            .unwrap_or_else(gone)
            .map_err(|error| failed("runtime", error))?;
        Ok(Self {
            system,
            handle,
            pulse: Pulse::default(),
            _until: until,
        })
    }

    /// Runs `work` on the thread. Dropping the answer ends the work where it stands.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Running<T> {
        let pulse = self.pulse.clone();
        let task = self.handle.spawn(async move {
            pulse.keep();
            work.await
        });
        Running {
            system: self.system,
            task,
        }
    }

    /// Leaves `work` to the thread: it goes on until it ends, or the thread does.
    pub fn leave(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Lets go of `value` on the thread: what a driver does when dropped may need its runtime.
    pub fn drop_there(&self, value: impl Send + 'static) {
        self.leave(async move { drop(value) });
    }
}

/// Work under way on a store's thread.
#[derive(Debug)]
pub struct Running<T> {
    system: System,
    task: JoinHandle<T>,
}

impl<T> Future for Running<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let system = self.system.name;
        Pin::new(&mut self.task).poll(context).map_err(|error| {
            // Not in the panic's own words: they may quote anything, a password too.
            let how = if error.is_panic() { "a panic" } else { "its end" };
            let message = format!("the {system} store's own thread gave the request up: {how}; ask again");
            StoreError::unknown(Fault::Internal, message)
        })
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        // A request that nobody waits for any more must not be sent seconds later.
        self.task.abort();
    }
}
