//! In the place of `std::sync::mpsc`.

use super::{note_blocking_wait, point, timeout};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc;

pub(crate) use std::sync::mpsc::{RecvTimeoutError, SendError};

pub(crate) struct Sender<T>(mpsc::UnboundedSender<T>);
pub(crate) struct Receiver<T>(Mutex<mpsc::UnboundedReceiver<T>>);

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Sender(sender), Receiver(Mutex::new(receiver)))
}

impl<T> Sender<T> {
    pub(crate) fn send(&self, message: T) -> Result<(), SendError<T>> {
        point();
        self.0.send(message).map_err(|error| SendError(error.0))
    }
}

impl<T> Receiver<T> {
    pub(crate) fn recv_timeout(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        note_blocking_wait();
        let mut receiver = self.0.try_lock().expect("one thread receives");
        match shuttle::future::block_on(timeout(limit, receiver.recv())) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(RecvTimeoutError::Disconnected),
            Err(_) => Err(RecvTimeoutError::Timeout),
        }
    }
}
