//! Locks that end with a task. (Not one of the files that run over `crate::sync`: tasks are the user's tokio's.)

use crate::lock::{Hold, Lock};
use std::future::Future;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Ends a lock when it is dropped, however many guards there are.
struct EndsWith(Arc<Hold>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Lock {
    /// Releases the lock when `task` has ended, though the guard was leaked: looked at with every beat.
    ///
    /// Bound to several tasks, it ends with the first. A guard that lives on finds its authority gone.
    #[must_use = "the guard is still what holds the lock"]
    pub fn bound_to<T>(self, task: &JoinHandle<T>) -> Self {
        let task = task.abort_handle();
        self.bind(Box::new(move || task.is_finished()));
        self
    }

    /// Spawns `work` with the lock, which is released as soon as the task has ended, by whatever way: returned,
    /// panicked, aborted, and though the guard was leaked.
    ///
    /// Needs a tokio runtime.
    pub fn spawn<Working>(
        self,
        work: impl FnOnce(Self) -> Working + Send + 'static,
    ) -> JoinHandle<Working::Output>
    where
        Working: Future<Output: Send> + Send + 'static,
    {
        let end = EndsWith(self.hold());
        tokio::spawn(async move {
            let _end = end;
            work(self).await
        })
    }
}
