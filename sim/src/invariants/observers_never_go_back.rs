//! What a process is told of who leads never goes back to an earlier token.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "observers-never-go-back",
    guarantee: "G21",
    source: "I21",
    assumes: Assumes::Store,
};

/// The highest token that one process was told of, for one lease.
#[derive(Clone, Copy, Default, Debug)]
pub struct ObserversNeverGoBack {
    highest: u64,
}

impl ObserversNeverGoBack {
    /// The process was told that this term is held, by others or by itself.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it was told of a later one before.
    pub fn told(&mut self, token: u64) -> Verdict {
        let highest = self.highest;
        self.highest = highest.max(token);
        hold(&LAW, token >= highest, || {
            format!("told that token {token} leads after token {highest}")
        })
    }
}
