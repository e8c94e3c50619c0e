use super::point;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendError, TryRecvError};

pub(crate) struct UnboundedSender<T>(mpsc::UnboundedSender<T>);
pub(crate) struct UnboundedReceiver<T>(mpsc::UnboundedReceiver<T>);
pub(crate) struct Sender<T>(mpsc::Sender<T>);
pub(crate) struct Receiver<T>(mpsc::Receiver<T>);

pub(crate) fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (UnboundedSender(sender), UnboundedReceiver(receiver))
}

pub(crate) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(capacity);
    (Sender(sender), Receiver(receiver))
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> UnboundedSender<T> {
    pub(crate) fn send(&self, message: T) -> Result<(), SendError<T>> {
        point();
        self.0.send(message)
    }

    pub(crate) async fn closed(&self) {
        point();
        self.0.closed().await;
    }
}

impl<T> UnboundedReceiver<T> {
    pub(crate) async fn recv(&mut self) -> Option<T> {
        point();
        self.0.recv().await
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Sender<T> {
    pub(crate) async fn send(&self, message: T) -> Result<(), SendError<T>> {
        point();
        self.0.send(message).await
    }

    pub(crate) async fn closed(&self) {
        point();
        self.0.closed().await;
    }
}

impl<T> Receiver<T> {
    pub(crate) async fn recv(&mut self) -> Option<T> {
        point();
        self.0.recv().await
    }

    pub(crate) fn is_closed(&self) -> bool {
        point();
        self.0.is_closed()
    }

    pub(crate) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        point();
        self.0.try_recv()
    }
}
