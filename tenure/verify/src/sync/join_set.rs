use super::{Alive, point};
use std::convert::Infallible;
use std::future::Future;
use tokio::sync::mpsc;

/// As tokio's: tasks whose outcomes are awaited together, and which end with it.
pub(crate) struct JoinSet<T> {
    sender: mpsc::UnboundedSender<T>,
    outcomes: mpsc::UnboundedReceiver<T>,
    tasks: Vec<shuttle::future::JoinHandle<()>>,
    waiting: usize,
}

impl<T: Send + 'static> JoinSet<T> {
    pub(crate) fn new() -> Self {
        let (sender, outcomes) = mpsc::unbounded_channel();
        Self {
            sender,
            outcomes,
            tasks: Vec::new(),
            waiting: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
        let (sender, alive) = (self.sender.clone(), Alive::new());
        self.waiting += 1;
        self.tasks.push(shuttle::future::spawn(async move {
            let _alive = alive;
            let outcome = task.await;
            point();
            let _ = sender.send(outcome);
        }));
    }

    /// A panic of a task fails the whole execution here, so there is no error.
    pub(crate) async fn join_next(&mut self) -> Option<Result<T, Infallible>> {
        point();
        if self.waiting == 0 {
            return None;
        }
        let outcome = self.outcomes.recv().await?;
        self.waiting -= 1;
        Some(Ok(outcome))
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
