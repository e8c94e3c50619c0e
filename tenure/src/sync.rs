//! Everything by which the parts of this crate run at the same time, share, and wait.
//!
//! The shell takes it from here and from nowhere else: the crate in `tenure/verify` compiles the same files
//! over a `sync` and a `clock` of its own, and tries more orders of what happens than a machine ever shows.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::mpsc as blocking;
pub(crate) use tokio::select;
pub(crate) use tokio::sync::{broadcast, mpsc, oneshot, watch};
pub(crate) use tokio::task::{JoinSet, spawn};
pub(crate) use tokio::time::{sleep, timeout};

use std::future::Future;
use std::io;
use tokio::runtime::{EnterGuard, Handle};

/// Where a runtime's timers and tasks are, for whoever does something in its place.
#[derive(Clone)]
pub(crate) struct Surroundings(Handle);

impl Surroundings {
    /// Those of the runtime that this runs on.
    pub(crate) fn here() -> Self {
        Self(Handle::current())
    }

    /// Whether they are those of the runtime that this runs on.
    pub(crate) fn are_here(&self) -> bool {
        self.0.id() == Handle::current().id()
    }

    /// What is made while the guard lives belongs there.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.0.enter()
    }
}

/// Runs what `begin` makes, on a thread and a tokio runtime of their own; what it has spawned ends with it.
///
/// # Errors
/// No runtime or no thread could be had. Nothing was started.
pub(crate) fn run_on_a_thread<Running>(
    name: String,
    begin: impl FnOnce() -> Running + Send + 'static,
) -> io::Result<()>
where
    Running: Future<Output = ()>,
{
    let (tell, told) = blocking::channel();
    // The runtime is made there, not here and handed over: where no thread is to be had, it would be dropped
    // here, which panics on a runtime of the caller's.
    std::thread::Builder::new().name(name).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => {
                let _ = tell.send(Ok(()));
                runtime.block_on(async move { begin().await });
                // A request to a store that hangs must not keep the process.
                runtime.shutdown_background();
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    })?;
    let gone = |_| io::Error::other("its thread ended before it had a runtime");
    told.recv().map_err(gone)?
}
