use std::fmt;

/// What must never be otherwise, by its promise in `GUARANTEES.md`.
///
/// All are judged by what the store's record is, what its answers were and what work is running, never by the
/// engine's own arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Invariant {
    /// G1: a lease that somebody holds is not granted to another process.
    OneHolder,
    /// G2: who believes, at its own clock, is the holder of an unexpired record with its token.
    BeliefIsTrue,
    /// G2: two processes never believe at once.
    OneBeliever,
    /// G4: the token of a new term is greater than that of every term before.
    TokensRise,
    /// G4: no token is given to two attempts.
    TokenOnce,
    /// G5: a token is never taken up again after its release was sent.
    NeverTakenUpAgain,
    /// G8: a release changes only the very term that it names.
    ReleasesOnlyItsOwn,
    /// G9: a renewal revives nothing and changes neither holder nor token.
    RenewalIsInert,
    /// G10: a release is sent only after the work has ended and belief is gone.
    ReleasedAfterWork,
    /// G12: each term begins once and ends once, and belief follows it.
    TermOnce,
    /// G6: the fence accepts no write of a term after a later one has claimed.
    FenceHolds,
    /// G7: no accepted write is based on what another accepted write has changed since.
    NoLostUpdate,
    /// G13: a withdrawn campaign leaves nothing that it does not know of. Judged where no message is late:
    /// what a late request takes, nobody can know of.
    WithdrawalLeavesNothing,
    /// A request losing against a holder changes nothing.
    LosersChangeNothing,
    /// An engine asks for its own lease, in its own name, for the ttl that it was given.
    RequestsAreItsOwn,
    /// G13, G17: once nothing fails any more, somebody leads within the bound.
    SomebodyLeads,
}

impl Invariant {
    /// Its number in `GUARANTEES.md`, or `contract`.
    #[must_use]
    pub fn guarantee(self) -> &'static str {
        match self {
            Self::OneHolder => "G1",
            Self::BeliefIsTrue | Self::OneBeliever => "G2",
            Self::TokensRise | Self::TokenOnce => "G4",
            Self::NeverTakenUpAgain => "G5",
            Self::FenceHolds => "G6",
            Self::NoLostUpdate => "G7",
            Self::ReleasesOnlyItsOwn => "G8",
            Self::RenewalIsInert => "G9",
            Self::ReleasedAfterWork => "G10",
            Self::TermOnce => "G12",
            Self::WithdrawalLeavesNothing => "G13",
            Self::SomebodyLeads => "G17",
            Self::LosersChangeNothing | Self::RequestsAreItsOwn => "contract",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::OneHolder => "a lease that is held was granted to another process",
            Self::BeliefIsTrue => "a process believes in a lease that the store does not keep for it",
            Self::OneBeliever => "two processes believe at once",
            Self::TokensRise => "the token of a new term is not greater than the last",
            Self::TokenOnce => "one token was given to two attempts",
            Self::NeverTakenUpAgain => "a token was taken up again after its release was sent",
            Self::ReleasesOnlyItsOwn => "a release changed another term",
            Self::RenewalIsInert => "a renewal changed more than the expiry of a held lease",
            Self::ReleasedAfterWork => "a release was sent before the work ended and belief was gone",
            Self::TermOnce => "a term did not begin once and end once",
            Self::FenceHolds => "the fence accepted a write of a stale term",
            Self::NoLostUpdate => "an accepted write was lost",
            Self::WithdrawalLeavesNothing => {
                "a withdrawn campaign left a held lease, and does not know of it"
            }
            Self::LosersChangeNothing => "a request that was refused changed the record",
            Self::RequestsAreItsOwn => "an engine sent a request that is not its own",
            Self::SomebodyLeads => "nobody leads although nothing fails any more",
        };
        write!(f, "{self:?} ({}): {words}", self.guarantee())
    }
}
