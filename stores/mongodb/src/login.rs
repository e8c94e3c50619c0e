//! By whom a client of ours is let in, and whether its connections are nobody's since.

use crate::fault::is_without_user;
use mongodb::error::Error;
use mongodb::options::ClientOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is the matter where the server knows nobody on a connection that was let in.
pub(crate) const USER_WAS_DROPPED: &str = "the user of this connection was dropped, or made anew, since it was let in; the next request logs in \
                                           anew, which works where there is one of this name and password";

/// By what one client of ours is let in, and whether its connections still are.
#[derive(Debug)]
pub(crate) struct Login {
    has_a_user: bool,
    is_over: AtomicBool,
}

impl Login {
    pub(crate) fn of(options: &ClientOptions) -> Arc<Self> {
        Arc::new(Self {
            has_a_user: options.credential.is_some(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Whether a new client would log in anew, where the connections of this one are nobody's any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Whether this means that it is over.
    pub(crate) fn ends_by(&self, error: &Error) -> bool {
        let ends = self.has_a_user && is_without_user(error);
        if ends {
            self.is_over.store(true, Ordering::SeqCst);
        }
        ends
    }
}
