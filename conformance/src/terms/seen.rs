//! What a run has shown.

use super::faults::Faults;
use std::time::Duration;

/// Of so many terms, one outcome at least is unknown.
const UNKNOWN_ONE_IN: u64 = 100;

/// Of so many, one at least is given again. Rare, as an answer that is lost must have been a grant.
const AGAIN_ONE_IN: u64 = 5_000;

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
    /// Whether that was enough.
    pub is_harmed: bool,
    /// The commands that were to be lost and repeated, and of which no request was: nobody sends them, or
    /// nobody knows them by that name any more.
    pub unstruck: Vec<&'static str>,
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
    /// Terms that began while another process believed, and terms that were lost before their deadline, of a
    /// deployment that does not promise exclusion: there they are no violations.
    pub not_excluded: u64,
    /// What must not happen.
    pub violations: Vec<String>,
}

impl Seen {
    /// Whether the run has shown something: one in which too few outcomes were unknown or too few terms given
    /// again has not, nor has one in which too few members were harmed, or too few while a network was
    /// silent, or in which a command that was to be lost and repeated never was. Where there are no networks,
    /// a term is given again by chance alone.
    #[must_use]
    pub fn has_shown_something(&self) -> bool {
        let unheard = self.unknown >= self.terms / UNKNOWN_ONE_IN && self.unknown > 0;
        let asked_again = self.again >= self.terms / AGAIN_ONE_IN || !self.has_networks;
        self.is_harmed && unheard && asked_again && self.unstruck.is_empty()
    }

    /// Whether nothing was violated, and there was something to violate.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.has_shown_something()
    }
}
