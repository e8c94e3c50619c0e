//! What must sometimes happen: a campaign in which it did not has proven less than it says.

macro_rules! sometimes {
    ($($(#[$doc:meta])* $kind:ident => $name:literal, 1 in $rarity:literal;)*) => {
        /// Something that is no fault and no violation, but must be reached.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Sometimes {
            $($(#[$doc])* $kind,)*
        }

        impl Sometimes {
            /// Every one, in the order of the report.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name in reports: lower case, words joined by hyphens.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// How many terms there must be for the rarest to be missed.
            #[must_use]
            pub fn terms_of_the_rarest() -> u64 {
                Self::ALL.iter().map(|sight| sight.terms_per_sight()).max().unwrap_or(0)
            }

            /// It must be reached at least once in this many terms.
            #[must_use]
            pub fn terms_per_sight(self) -> u64 {
                match self {
                    $(Self::$kind => $rarity,)*
                }
            }
        }
    };
}

sometimes! {
    /// A lease that had expired was taken over by another candidate.
    TakeOver => "take-over-after-expiry", 1 in 100;
    /// A lease that had been released was taken by another candidate.
    HandOver => "hand-over-after-release", 1 in 100;
    /// A write with the token of a past term was attempted, and refused by the fence.
    StaleWriteRefused => "stale-write-refused", 1 in 1_000;
    /// A claim with the token of a past term was attempted, and refused by the fence.
    StaleClaimRefused => "stale-claim-refused", 1 in 10_000;
    /// A write was admitted.
    WriteAdmitted => "write-admitted", 1 in 10;
    /// A write of a past term was admitted, because the next one had not claimed yet: nothing was lost.
    LateWriteAdmitted => "late-write-admitted-before-the-claim", 1 in 10_000;
    /// The outcome of a request stayed unknown.
    UnknownOutcome => "unknown-outcome", 1 in 100;
    /// A late duplicate changed a record.
    LateDuplicateApplied => "late-duplicate-applied", 1 in 10_000;
    /// An attempt was granted its term a second time.
    GrantedAgain => "granted-again", 1 in 1_000;
    /// A process took over from an earlier attempt of its own.
    OwnEarlierAttempt => "own-earlier-attempt", 1 in 10_000;
    /// An attempt came after a later one of its process, or after its own release.
    Superseded => "superseded", 1 in 10_000;
    /// A holder learnt by a renewal that it was asked to step down.
    WishToldByRenewal => "wish-told-by-a-renewal", 1 in 5_000;
    /// A holder learnt by its watch that it was asked to step down.
    WishToldByWatch => "wish-told-by-the-watch", 1 in 1_000;
    /// A term became doubtful.
    Doubted => "doubted", 1 in 100;
    /// A renewal ended a doubt.
    Reassured => "reassured", 1 in 1_000;
    /// A campaign ended by a misconfiguration.
    CampaignEnded => "campaign-ended-by-misconfiguration", 1 in 1_000;
    /// A withdrawn campaign had left a lease behind, which was released.
    OrphanReleased => "orphan-found-and-released", 1 in 100_000;
    /// A twin was told of its twin.
    TwinSeen => "twin-seen", 1 in 1_000;
    /// A term was given back.
    EndedGivenBack => "term-ended-given-back", 1 in 100;
    /// A term took the lease from the one before of its process, without a release in between.
    HandedOn => "handed-on-within-a-process", 1 in 1_000;
    /// A campaign that was to take the lease from the term before ended without it, and that term was
    /// released.
    HeirLeft => "heir-left-and-the-term-was-released", 1 in 100_000;
    /// A term ended because another one was seen.
    EndedSucceeded => "term-ended-succeeded", 1 in 10_000;
    /// A term ended because its record was over.
    EndedVanished => "term-ended-vanished", 1 in 1_000;
    /// A term ended at its deadline.
    EndedDeadline => "term-ended-at-the-deadline", 1 in 100;
    /// A term ended because its work was stuck.
    EndedNoProgress => "term-ended-no-progress", 1 in 1_000;
    /// The store did not confirm a release before the lease had surely expired.
    ReleaseUnconfirmed => "release-unconfirmed", 1 in 1_000;
    /// Two processes believed at one time where an assumption was broken, and the fence decided.
    TwoBelieversBeyondAssumptions => "two-believers-beyond-assumptions", 1 in 10_000;
    /// Somebody led again within the promised time after the faults had ended.
    Healed => "healed", 1 in 200;
    /// A leader kept its lease through an outage of the promised length.
    OutageSurvived => "outage-survived", 1 in 1_000;
}

/// How often each was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sights([u64; Sometimes::ALL.len()]);

impl Default for Sights {
    fn default() -> Self {
        Self([0; Sometimes::ALL.len()])
    }
}

impl Sights {
    /// Counts one more.
    pub fn add(&mut self, sight: Sometimes) {
        self.0[sight as usize] += 1;
    }

    /// How often it was reached.
    #[must_use]
    pub fn of(&self, sight: Sometimes) -> u64 {
        self.0[sight as usize]
    }

    /// Takes over what another run counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Everything that was reached more rarely than it must be in these terms, with its count.
    #[must_use]
    pub fn below_floor(&self, terms: u64) -> Vec<(Sometimes, u64)> {
        let all = Sometimes::ALL.iter().map(|sight| (*sight, self.of(*sight)));
        all.filter(|(sight, count)| *count < terms / sight.terms_per_sight())
            .collect()
    }
}
