use std::fmt;

/// Something that must happen somewhere in the explored states: otherwise the proof is about less than it
/// says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Milestone {
    /// A lease that expired was taken by another process.
    TakenOver,
    /// A lease that was released was taken by another process.
    TakenAfterRelease,
    /// A term was renewed.
    Renewed,
    /// A release was answered.
    Departed,
    /// A term ended at its deadline, without an answer.
    EndedAtDeadline,
    /// A holder was told that another holds its lease.
    ToldOfSuccessor,
    /// A request was given up.
    RequestGivenUp,
    /// A request was given up that the store had applied.
    UnknownOutcome,
    /// The same attempt was granted the same token again.
    GrantedAgain,
    /// A request came after a later one of the same process, or after its release.
    Superseded,
    /// A late request changed the record.
    LateRequestApplied,
    /// A late request changed nothing.
    LateRequestRefused,
    /// A withdrawn campaign had left a lease; it was found and released.
    OrphanReleased,
    /// A holder stepped down because somebody asked.
    HandedOverOnDemand,
    /// A term took the lease from the one before of its process, without a release in between.
    HandedOn,
    /// A process died.
    Crashed,
    /// A work claimed the fence after another had.
    FenceRaised,
    /// A stale term was refused by the fence.
    StaleRefused,
    /// A lease was vacated while its holder believed in it.
    ForcedRelease,
}

impl Milestone {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::TakenOver,
        Self::TakenAfterRelease,
        Self::Renewed,
        Self::Departed,
        Self::EndedAtDeadline,
        Self::ToldOfSuccessor,
        Self::RequestGivenUp,
        Self::UnknownOutcome,
        Self::GrantedAgain,
        Self::Superseded,
        Self::LateRequestApplied,
        Self::LateRequestRefused,
        Self::OrphanReleased,
        Self::HandedOverOnDemand,
        Self::HandedOn,
        Self::Crashed,
        Self::FenceRaised,
        Self::StaleRefused,
        Self::ForcedRelease,
    ];
}

/// A set of milestones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Milestones(u32);

impl Milestones {
    /// Adds one.
    pub fn add(&mut self, milestone: Milestone) {
        self.0 |= 1 << (milestone as u8);
    }

    /// Adds all of another set.
    pub fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether this one is in it.
    #[must_use]
    pub fn contains(self, milestone: Milestone) -> bool {
        self.0 & (1 << (milestone as u8)) != 0
    }

    /// Those of `wanted` that are missing.
    #[must_use]
    pub fn missing(self, wanted: &[Milestone]) -> Vec<Milestone> {
        let missing = wanted.iter().filter(|milestone| !self.contains(**milestone));
        missing.copied().collect()
    }
}

impl fmt::Debug for Milestones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contained = Milestone::ALL.iter().filter(|one| self.contains(**one));
        f.debug_set().entries(contained).finish()
    }
}
