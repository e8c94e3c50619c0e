//! Locks that end with a task. (Not one of the files that run over `crate::sync`: tasks are the user's
//! tokio's.)

use crate::lock::{Bond, Lock};
use std::future::Future;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Lets a handle go when it is dropped, though its guard was leaked.
struct EndsWith(Arc<Bond>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Lock {
    /// Releases the lock when `task` has ended, though the guard was leaked: looked at with every beat.
    ///
    /// Bound to several tasks, it ends with the first. A guard that lives on finds its authority gone. Of the
    /// [handles](crate::Reentrancy::Counted) of one owner it is this one that goes: the last one releases.
    #[must_use = "the guard is still what holds the lock"]
    pub fn bound_to<T>(mut self, task: &JoinHandle<T>) -> Self {
        let (task, bond) = (task.abort_handle(), self.bond());
        self.bind(Box::new(move || {
            let has_ended = task.is_finished();
            if has_ended {
                bond.end();
            }
            has_ended
        }));
        self
    }

    /// Spawns `work` with the lock, which is released as soon as the task has ended, by whatever way:
    /// returned, panicked, aborted, and though the guard was leaked. Of the
    /// [handles](crate::Reentrancy::Counted) of one owner it is this one that goes: the last one releases.
    ///
    /// Needs a tokio runtime.
    pub fn spawn<Working>(
        mut self,
        work: impl FnOnce(Self) -> Working + Send + 'static,
    ) -> JoinHandle<Working::Output>
    where
        Working: Future<Output: Send> + Send + 'static,
    {
        let end = EndsWith(self.bond());
        tokio::spawn(async move {
            let _end = end;
            work(self).await
        })
    }
}
