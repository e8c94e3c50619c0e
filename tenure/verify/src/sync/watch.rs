use super::point;
use tokio::sync::watch;
use tokio::sync::watch::Ref;
use tokio::sync::watch::error::RecvError;

#[derive(Debug)]
pub(crate) struct Sender<T>(watch::Sender<T>);
pub(crate) struct Receiver<T>(watch::Receiver<T>);

impl<T> Sender<T> {
    pub(crate) fn new(first: T) -> Self {
        Self(watch::Sender::new(first))
    }

    pub(crate) fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        point();
        self.0.send_if_modified(modify)
    }

    pub(crate) fn borrow(&self) -> Ref<'_, T> {
        point();
        self.0.borrow()
    }

    pub(crate) fn subscribe(&self) -> Receiver<T> {
        point();
        Receiver(self.0.subscribe())
    }
}

impl<T> Receiver<T> {
    pub(crate) fn borrow(&self) -> Ref<'_, T> {
        point();
        self.0.borrow()
    }

    pub(crate) fn borrow_and_update(&mut self) -> Ref<'_, T> {
        point();
        self.0.borrow_and_update()
    }

    pub(crate) async fn changed(&mut self) -> Result<(), RecvError> {
        point();
        self.0.changed().await
    }

    pub(crate) async fn wait_for(&mut self, holds: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
        point();
        self.0.wait_for(holds).await
    }
}
