//! The release is sent only after the work has ended and belief is gone.
//!
//! Terms are told apart by their tokens here. A store that forgets, and has no clock to count from, gives a
//! token twice: then the orphan of a new campaign is released while the work of the old term, long over, is
//! still on its way out (seed 12712).

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "release-comes-last",
    guarantee: "G10",
    source: "I12",
    assumes: Assumes::Store,
};

/// The latest term of one process for one lease, and whether its work has ended.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReleaseComesLast {
    working: u64,
}

impl ReleaseComesLast {
    /// Work began in the term with this token.
    pub fn began(&mut self, token: u64) {
        self.working = token;
    }

    /// The work of the term has ended.
    pub fn ended(&mut self, token: u64) {
        if self.working == token {
            self.working = 0;
        }
    }

    /// A release of this token was sent, while the process believed in `believed` (0: in none).
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if the term's work goes on, or the term is believed in.
    pub fn released(&self, token: u64, believed: u64) -> Verdict {
        hold(&LAW, self.working != token && believed != token, || {
            format!(
                "a release of token {token} was sent while token {} is worked on and {believed} believed in",
                self.working
            )
        })
    }
}
