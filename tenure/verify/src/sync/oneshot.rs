use super::point;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

pub(crate) use tokio::sync::oneshot::error::RecvError;

pub(crate) struct Sender<T>(oneshot::Sender<T>);
pub(crate) struct Receiver<T>(oneshot::Receiver<T>);

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = oneshot::channel();
    (Sender(sender), Receiver(receiver))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, outcome: T) -> Result<(), T> {
        point();
        self.0.send(outcome)
    }

    pub(crate) fn is_closed(&self) -> bool {
        point();
        self.0.is_closed()
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        point();
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        point();
    }
}
