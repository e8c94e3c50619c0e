//! That a handle goes with a task, if not before.

use super::guard::Hold;
use crate::sync::watch;
use std::sync::{Arc, Weak};

/// What a handle shares with whatever it ends with: whoever of them is first lets it go, once.
///
/// It keeps no lock by itself: a guard that is gone has let its handle go before.
pub(crate) struct Bond {
    hold: Weak<Hold>,
    gone: watch::Sender<bool>,
}

impl Bond {
    pub(super) fn new(hold: &Arc<Hold>, is_gone: bool) -> Self {
        Self {
            hold: Arc::downgrade(hold),
            gone: watch::Sender::new(is_gone),
        }
    }

    /// The handle goes. Whether it did not go before.
    pub(super) fn go(&self) -> bool {
        self.gone.send_if_modified(|gone| !std::mem::replace(gone, true))
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Returns when the handle is gone.
    pub(super) async fn over(&self) {
        // The sender is here: it does not go first.
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
    }

    /// What the handle was bound to has ended: the handle goes, and the term with it if it was the last.
    pub(crate) fn end(&self) {
        // Looked for first: a guard that goes meanwhile lets the handle go itself.
        if let Some(hold) = self.hold.upgrade()
            && self.go()
        {
            hold.let_one_go();
        }
    }
}
