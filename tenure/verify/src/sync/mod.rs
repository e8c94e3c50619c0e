//! In the place of the product's `sync`: the same channels, with a point before each use at which the
//! scheduler may let another go first; atomics, tasks and threads of shuttle.
//!
//! The channels are tokio's own. They know nothing of a runtime, so they work on shuttle's tasks; what
//! happens inside one call is tokio's business and stays one step here. (The crate `shuttle-tokio` was looked
//! at: it has no virtual time, its broadcast channel is a stub, and `watch::Sender::new` is missing.)

pub(crate) mod blocking;
pub(crate) mod broadcast;
mod join_set;
pub(crate) mod mpsc;
pub(crate) mod oneshot;
pub(crate) mod watch;

pub(crate) use crate::clock::{sleep, timeout};
pub(crate) use join_set::JoinSet;
pub(crate) use shuttle::sync::Mutex;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use tokio::select;

use std::cell::Cell;
use std::future::Future;
use std::io;

/// Lets another go first, if the scheduler likes.
pub(crate) fn point() {
    if std::thread::panicking() {
        // What fell is being cleared away: nothing more is to be found out.
        return;
    }
    // A yield would tell the scheduler that this task cannot go on; any atomic is a point without that.
    AtomicBool::new(false).load(Ordering::SeqCst);
}

thread_local! {
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    static WAITED: Cell<usize> = const { Cell::new(0) };
}

/// Forgets what an earlier execution on this system thread has left.
pub(crate) fn begin() {
    RUNNING.set(0);
    WAITED.set(0);
    broadcast::keep_all();
}

/// How many threads and tasks of the shell run now.
pub(crate) fn running() -> usize {
    RUNNING.get()
}

/// How often a thread was blocked in a wait, so far.
pub(crate) fn blocking_waits() -> usize {
    WAITED.get()
}

fn note_blocking_wait() {
    WAITED.set(WAITED.get() + 1);
}

/// Counts as running while it lives.
struct Alive;

impl Alive {
    fn new() -> Self {
        RUNNING.set(RUNNING.get() + 1);
        Self
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get().saturating_sub(1));
    }
}

/// Tasks and timers belong to the scheduler here, wherever they are made.
#[derive(Clone)]
pub(crate) struct Surroundings;

impl Surroundings {
    pub(crate) fn here() -> Self {
        Self
    }

    pub(crate) fn are_here(&self) -> bool {
        true
    }

    #[must_use]
    pub(crate) fn enter(&self) -> impl Drop + '_ {
        struct Inside;
        impl Drop for Inside {
            fn drop(&mut self) {}
        }
        Inside
    }
}

/// As tokio's.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    let alive = Alive::new();
    drop(shuttle::future::spawn(async move {
        let _alive = alive;
        task.await;
    }));
}

/// As in the product. What was spawned does *not* end with it here: a task that stays behind is then seen.
pub(crate) fn run_on_a_thread<Running>(
    _name: String,
    begin: impl FnOnce() -> Running + Send + 'static,
) -> io::Result<()>
where
    Running: Future<Output = ()>,
{
    let alive = Alive::new();
    drop(shuttle::thread::spawn(move || {
        let _alive = alive;
        shuttle::future::block_on(begin());
    }));
    Ok(())
}
