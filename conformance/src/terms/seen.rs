//! What a run has shown.

use super::faults::Faults;
use std::time::Duration;

/// What was seen in a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Terms that began.
    pub terms: u64,
    /// Of so many leases.
    pub leases: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether any process had a network of its own.
    pub has_networks: bool,
    /// What was done to the processes' networks and to the members.
    pub faults: Faults,
    /// Requests whose outcome nobody knew.
    pub unknown: u64,
    /// Grants that were over when they arrived.
    pub late: u64,
    /// Terms that the same attempt was granted once more.
    pub again: u64,
    /// Renewals.
    pub renewed: u64,
    /// Tokens that were given to two attempts; each is a violation, too.
    pub duplicate_tokens: u64,
    /// Terms that began while another process believed, and terms that were lost before their deadline, of a deployment that does
    /// not promise exclusion: there they are no violations.
    pub not_excluded: u64,
    /// What must not happen.
    pub violations: Vec<String>,
}

impl Seen {
    /// Whether the run has shown something: one in which no outcome was unknown and no term was given again has not, nor has one
    /// in which no member was harmed. Where there are no networks, an outcome is unknown by chance alone.
    #[must_use]
    pub fn has_shown_something(&self) -> bool {
        let asked_again = self.unknown > 0 && self.again > 0;
        let harmed = self.faults.killed > 0 && self.faults.frozen > 0;
        harmed && (asked_again || !self.has_networks)
    }

    /// Whether nothing was violated, and there was something to violate.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.has_shown_something()
    }
}
