//! Files that a URL names, and that are replaced while the store is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::{Fault, StoreError};

/// Files that are read anew for each connection, as they are replaced before what they hold expires. A clone
/// is the same ones.
#[derive(Clone, Default, Debug)]
pub struct RenewedFiles {
    were_of_use: Arc<AtomicBool>,
}

impl RenewedFiles {
    /// A connection was made by them.
    pub fn are_of_use(&self) {
        self.were_of_use.store(true, Ordering::Relaxed);
    }

    /// What is wrong with them. Of files that were of use before it passes: they are being replaced, and a
    /// certificate is there before its key, or a file before its content. It is nothing then that only a
    /// person can mend.
    #[must_use]
    pub fn wrong(&self, mut error: StoreError) -> StoreError {
        if error.fault == Fault::Invalid && self.were_of_use.load(Ordering::Relaxed) {
            error.fault = Fault::Unreachable;
        }
        error
    }
}
