//! Who has withdrawn asks for the lease no more, unless somebody wants it anew: also what was wanted after
//! the end of an earlier term.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "withdrawn-asks-no-more",
    guarantee: "G13",
    source: "I18",
    assumes: Assumes::Nothing,
};

/// Whether one process was told to campaign for one lease, and not to stop since.
#[derive(Clone, Copy, Default, Debug)]
pub struct WithdrawnAsksNoMore {
    wanted: bool,
}

impl WithdrawnAsksNoMore {
    /// It was told to campaign.
    pub fn wants(&mut self) {
        self.wanted = true;
    }

    /// It was told to withdraw, or it leads.
    pub fn ends(&mut self) {
        self.wanted = false;
    }

    /// It asks for the lease by this attempt.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if nobody wants it.
    pub fn asks(&self, attempt: u64) -> Verdict {
        hold(&LAW, self.wanted, || {
            format!("attempt {attempt} asks for a lease that nobody wants")
        })
    }
}
