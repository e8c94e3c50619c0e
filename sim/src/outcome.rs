//! What came of running one seed.

use crate::faults::FaultCounts;
use crate::invariants::Breach;
use crate::sometimes::Sights;
use std::fmt;
use std::time::Duration;

/// What came of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Terms that processes led, all of them.
    pub terms: u64,
    /// Of these, the terms for which an assumption was broken, or which an operator broke: only the fence and
    /// the rules that assume nothing were checked.
    pub fence_only_terms: u64,
    /// Of those that led, the terms for which not even the fence is promised: the store forgot, and its clock
    /// was behind.
    pub lapsed_terms: u64,
    /// Things that happened.
    pub happenings: u64,
    /// Simulated real time, in nanoseconds.
    pub simulated: u64,
    /// Faults that happened.
    pub faults: FaultCounts,
    /// What was reached.
    pub sights: Sights,
    /// A hash over every step: who, when, what, and what came of it. A function of commit and seed, the same
    /// in debug and release builds.
    pub trace_hash: u64,
    /// The first violation; the run ended with it.
    pub violation: Option<Violation>,
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// When, in nanoseconds of real time.
    pub at: u64,
    /// What.
    pub breach: Breach,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, at, breach } = self;
        let at = Duration::from_nanos(*at);
        write!(
            f,
            "{} ({}, {}) at {at:?} of seed {seed}: {}",
            breach.law.name, breach.law.guarantee, breach.law.source, breach.what
        )
    }
}
