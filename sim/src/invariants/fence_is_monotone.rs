//! A fence admits no token lower than one that has claimed the resource.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "fence-is-monotone",
    guarantee: "G6",
    source: "I6",
    assumes: Assumes::Nothing,
};

/// The highest token that claimed, or wrote.
#[derive(Clone, Copy, Default, Debug)]
pub struct FenceIsMonotone {
    highest: u64,
}

impl FenceIsMonotone {
    /// A claim or a write of this token was admitted.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if a higher one had been admitted before.
    pub fn admitted(&mut self, token: u64) -> Verdict {
        let highest = self.highest;
        self.highest = highest.max(token);
        hold(&LAW, token >= highest, || {
            format!("the fence admitted token {token} after token {highest}")
        })
    }
}
