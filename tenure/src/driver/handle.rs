//! By what others speak to a driver.

use super::Message;
use super::helm::Helm;
use crate::sync::mpsc;
use std::sync::Arc;
use tokio::sync::mpsc::error::SendError;

/// A way to a driver. When the last is gone, the driver leaves as if told to. One pointer: a hundred thousand
/// terms have one each.
#[derive(Clone)]
pub(crate) struct DriverHandle(Arc<Way>);

struct Way {
    messages: mpsc::UnboundedSender<Message>,
    /// `None` where requests belong to a thread of the store's.
    helm: Option<Arc<Helm>>,
}

/// The driver is gone, and holds nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gone;

impl DriverHandle {
    pub(super) fn new(messages: mpsc::UnboundedSender<Message>, helm: Option<Arc<Helm>>) -> Self {
        Self(Arc::new(Way { messages, helm }))
    }

    /// Says something that nobody here waits for.
    pub(crate) fn tell(&self, message: Message) -> Result<(), Gone> {
        self.0.messages.send(message).map_err(|SendError(_)| Gone)
    }

    /// Says something to whose answer somebody here looks forward: what can be done at once is done before
    /// this returns.
    pub(crate) fn ask(&self, message: Message) -> Result<(), Gone> {
        match &self.0.helm {
            Some(helm) => helm.step_with(|| self.tell(message)),
            None => self.tell(message),
        }
    }

    /// Returns when the driver is gone.
    pub(crate) async fn gone(&self) {
        self.0.messages.closed().await;
    }
}
