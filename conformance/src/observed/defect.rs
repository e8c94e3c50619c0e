/// A way in which the adaptor, or a store under it, can be wrong, planted to prove that a case would notice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObservedDefect {
    /// The observer waits for its own ttl, and not for the record's.
    OwnTtlCounts,
    /// A version counts from when it was asked for, and not from its answer.
    CountsFromAsking,
    /// The margin for the error of the clocks' rates is left out.
    NoRateMargin,
    /// A version counts as long as there is any.
    ExpiryAcrossRevisions,
    /// A renewal changes nothing that can be seen: neither the revision nor the count of renewals.
    RenewalKeepsRevision,
    /// Whatever revision the record has is written over.
    SwapIgnoresRevision,
    /// A conflict is taken for success.
    ConflictIsSuccess,
    /// What the store says of time does not enter into tokens.
    FloorForgotten,
    /// The watch does not tell of wishes.
    WatchMissesWishes,
}

impl ObservedDefect {
    /// Every defect.
    pub const ALL: &[Self] = &[
        Self::OwnTtlCounts,
        Self::CountsFromAsking,
        Self::NoRateMargin,
        Self::ExpiryAcrossRevisions,
        Self::RenewalKeepsRevision,
        Self::SwapIgnoresRevision,
        Self::ConflictIsSuccess,
        Self::FloorForgotten,
        Self::WatchMissesWishes,
    ];

    /// The name of the case that is there to catch it. Others may, too.
    #[must_use]
    pub fn caught_by(self) -> &'static str {
        match self {
            Self::OwnTtlCounts => "short_ttl_of_the_asker_does_not_shorten_the_lease",
            Self::NoRateMargin => "take_over_happens_after_the_ttl_and_not_before",
            Self::CountsFromAsking | Self::ExpiryAcrossRevisions | Self::RenewalKeepsRevision => {
                "take_over_waits_for_the_last_of_several_renewals"
            }
            Self::SwapIgnoresRevision => "one_of_sixteen_wins_an_expired_lease",
            Self::ConflictIsSuccess => "one_of_sixteen_wins_a_new_lease",
            Self::FloorForgotten => "token_rises_after_a_clean_up",
            Self::WatchMissesWishes => "watch_tells_of_a_wish",
        }
    }
}
