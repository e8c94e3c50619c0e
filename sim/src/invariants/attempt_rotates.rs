//! A token is never taken up again after its term ended or its release was sent: the next attempt is another.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "attempt-rotates",
    guarantee: "G5",
    source: "I9",
    assumes: Assumes::Nothing,
};

/// The attempts of one process for one lease.
#[derive(Clone, Copy, Default, Debug)]
pub struct AttemptRotates {
    latest: u64,
    spent: u64,
}

impl AttemptRotates {
    /// The process asks for the lease by this attempt.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if a term or a release of it has been before, or a later attempt.
    pub fn asks(&mut self, attempt: u64) -> Verdict {
        let sound = attempt > self.spent && attempt >= self.latest;
        let (latest, spent) = (self.latest, self.spent);
        self.latest = self.latest.max(attempt);
        hold(&LAW, sound, || {
            format!("attempt {attempt} is asked with after attempt {latest}; attempt {spent} is spent")
        })
    }

    /// A term began by the latest attempt.
    pub fn began(&mut self) {
        self.spent = self.latest;
    }

    /// The process sent a release for this attempt.
    pub fn released(&mut self, attempt: u64) {
        self.spent = self.spent.max(attempt);
    }
}
