//! No accepted write is lost: each one was computed from the last one that was accepted.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "no-lost-update",
    guarantee: "G7",
    source: "I7",
    assumes: Assumes::StoreOrClock,
};

/// The history of one register, as far as it matters: the last accepted write.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoLostUpdate {
    last: u64,
}

impl NoLostUpdate {
    /// Write `number` of `token` was accepted; it was computed from what write `from` had left.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if another write was accepted in between: it is lost.
    pub fn accepted(&mut self, number: u64, from: u64, token: u64) -> Verdict {
        let last = self.last;
        self.last = number;
        hold(&LAW, from == last, || {
            format!("write {number} of token {token} was computed from write {from}; write {last} is lost")
        })
    }
}
