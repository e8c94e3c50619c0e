use tenure_core::{Answer, Fault, Scope, StoreError, Watch, WatchEvent};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// A watch of a model store. Falls behind by [`EVENTS_MAX`](super::store::EVENTS_MAX) events at most, and
/// then says that there is a gap.
pub(super) struct ModelWatch {
    pub(super) scope: Scope,
    pub(super) events: Receiver<WatchEvent>,
}

impl Watch for ModelWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async {
            loop {
                match self.events.recv().await {
                    Ok(WatchEvent::Changed { name, .. }) if !self.scope.covers(&name) => {}
                    Ok(event) => return Ok(event),
                    Err(RecvError::Lagged(_)) => return Ok(WatchEvent::Gap),
                    Err(RecvError::Closed) => {
                        let message = "the watched model store was dropped; start another";
                        return Err(StoreError::not_applied(Fault::Unreachable, message));
                    }
                }
            }
        })
    }
}
