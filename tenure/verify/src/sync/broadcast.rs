use super::point;
use std::cell::Cell;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, SendError, TryRecvError};

pub(crate) struct Sender<T>(broadcast::Sender<T>);
pub(crate) struct Receiver<T>(broadcast::Receiver<T>);

thread_local! {
    static KEPT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Lets new channels keep what the product says.
pub(super) fn keep_all() {
    KEPT.set(usize::MAX);
}

/// Lets new channels keep so few that a scenario can fall behind.
pub(crate) fn keep(few: usize) {
    KEPT.set(few);
}

impl<T: Clone> Sender<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self(broadcast::Sender::new(capacity.min(KEPT.get())))
    }

    pub(crate) fn send(&self, message: T) -> Result<usize, SendError<T>> {
        point();
        self.0.send(message)
    }

    pub(crate) fn subscribe(&self) -> Receiver<T> {
        point();
        Receiver(self.0.subscribe())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Clone> Receiver<T> {
    pub(crate) async fn recv(&mut self) -> Result<T, RecvError> {
        point();
        self.0.recv().await
    }

    pub(crate) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.0.try_recv()
    }
}
