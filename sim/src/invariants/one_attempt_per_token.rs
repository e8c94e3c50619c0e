//! One token belongs to one attempt of one process.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "one-attempt-per-token",
    guarantee: "G4",
    source: "I5",
    assumes: Assumes::StoreOrClock,
};

/// How many of the latest tokens are remembered: enough for any answer that is still under way.
const REMEMBERED: usize = 8;

/// To whom the latest tokens of a name were granted.
#[derive(Clone, Copy, Default, Debug)]
pub struct OneAttemptPerToken {
    latest: [(u64, u64, u64); REMEMBERED],
    next: usize,
}

impl OneAttemptPerToken {
    /// The store granted this token to this attempt of this process, for the first time or again.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it was another's.
    pub fn granted(&mut self, token: u64, holder: u64, attempt: u64) -> Verdict {
        if let Some(owner) = self.latest.iter().find(|owner| owner.0 == token) {
            let owner = *owner;
            return hold(&LAW, owner == (token, holder, attempt), || {
                format!(
                    "token {token} of process {}, attempt {}, was granted to process {holder}, attempt {attempt}",
                    owner.1, owner.2
                )
            });
        }
        self.latest[self.next] = (token, holder, attempt);
        self.next = (self.next + 1) % REMEMBERED;
        Ok(())
    }
}
