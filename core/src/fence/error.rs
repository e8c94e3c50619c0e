use crate::{Fault, FencingToken, LeaseName, ResourceName, StoreError};
use std::fmt;

/// How a fence knows which tokens cannot have been granted yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Horizon {
    /// The fence knows the record of the lease that is beside its marks: this is the highest token in it.
    /// Exact, if that is where the lease is kept: a record that was left there when the leases went to
    /// another store says nothing any more, and is not asked where the fence was told so
    /// ([`Leases::Elsewhere`](crate::Leases::Elsewhere)).
    Granted(FencingToken),
    /// The lease is elsewhere: this is [`horizon`](crate::horizon) of the fence's own clock and the mark. It
    /// keeps out what would close the resource for ever, not a token that is wrong by less than a day.
    Clock(FencingToken),
}

impl Horizon {
    /// The highest token that may exist.
    #[must_use]
    pub fn token(self) -> FencingToken {
        match self {
            Self::Granted(token) | Self::Clock(token) => token,
        }
    }
}

/// Why a fence did not admit a term.
///
/// Effect on authority: none by itself; but a stale term has certainly been succeeded, and its work must end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FenceError {
    /// A later term has claimed the resource, or an operator has raised its mark
    /// ([`Mark::bumped`](super::Mark::bumped)): the write was refused, and so will be every other of this
    /// term.
    Stale {
        /// The protected resource.
        resource: ResourceName,
        /// The refused token.
        token: FencingToken,
        /// The mark that refused it; where there is none, the token that its lease has granted since.
        mark: FencingToken,
    },
    /// This term has not claimed the resource. Claim first, then read, then write: without the claim, an
    /// older term may still change what was read, and an accepted write is lost.
    Unclaimed {
        /// The protected resource.
        resource: ResourceName,
        /// The token that has not claimed.
        token: FencingToken,
    },
    /// The resource belongs to another lease, whose tokens say nothing about this one's. A mistake of the
    /// program's, or two programs that share a name; nothing was changed.
    Foreign {
        /// The protected resource.
        resource: ResourceName,
        /// The lease of the refused term.
        lease: LeaseName,
        /// The refused token.
        token: FencingToken,
        /// The lease that the resource belongs to, since its first claim.
        owner: LeaseName,
    },
    /// No store can have granted this token yet: admitting it would refuse every real term after it. Nothing
    /// was changed.
    Future {
        /// The protected resource.
        resource: ResourceName,
        /// The lease of the refused term.
        lease: LeaseName,
        /// The refused token.
        token: FencingToken,
        /// What is known of the tokens that exist.
        horizon: Horizon,
    },
    /// The store of the fence failed.
    Store(StoreError),
}

impl FenceError {
    /// All that [`reason`](Self::reason) may say.
    pub const REASONS: [&str; 4] = ["stale", "unclaimed", "foreign", "future"];

    /// Why it was refused, in one word for a metric's label: `stale`, `unclaimed`, `foreign` or `future`;
    /// `None` if the fence's store failed instead.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Stale { .. } => Some("stale"),
            Self::Unclaimed { .. } => Some("unclaimed"),
            Self::Foreign { .. } => Some("foreign"),
            Self::Future { .. } => Some("future"),
            Self::Store(_) => None,
        }
    }

    /// Whether making the same claim again is useless: the fence has refused it, or its store has a fault
    /// that only a person can mend, as far as it tells
    /// ([`Fault::is_misconfiguration`](crate::Fault::is_misconfiguration)), or is another than this fence was
    /// opened for ([`Fault::AnotherStore`](crate::Fault::AnotherStore)): one that is opened anew goes by what
    /// is there. Anything else may pass: an open transaction, a fail-over, a disk that is full.
    ///
    /// A campaign waits for more ([`Fault::is_final`](crate::Fault::is_final)): a login that is refused for a
    /// moment, a record that its holder puts right. But who claims holds the lease, and keeps everybody else
    /// from the work meanwhile.
    #[must_use]
    pub fn ends_a_claim(&self) -> bool {
        match self {
            Self::Stale { .. } | Self::Unclaimed { .. } | Self::Foreign { .. } | Self::Future { .. } => true,
            Self::Store(error) => error.fault.is_misconfiguration() || error.fault == Fault::AnotherStore,
        }
    }

    /// What was refused, and its token; `None` if the fence's store failed instead, and nothing was decided.
    #[must_use]
    pub fn refused(&self) -> Option<(&ResourceName, FencingToken)> {
        match self {
            Self::Stale { resource, token, .. }
            | Self::Unclaimed { resource, token }
            | Self::Foreign { resource, token, .. }
            | Self::Future { resource, token, .. } => Some((resource, *token)),
            Self::Store(_) => None,
        }
    }
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale {
                resource,
                token,
                mark,
            } => write!(
                f,
                "refused: token {token} is stale for \"{resource}\", which admits none below {mark}; stop this work"
            ),
            Self::Unclaimed { resource, token } => write!(
                f,
                "refused: token {token} has not claimed \"{resource}\"; claim the fence before reading what will be changed"
            ),
            Self::Foreign {
                resource,
                lease,
                token,
                owner,
            } => write!(
                f,
                "refused: token {token} is of lease \"{lease}\", but \"{resource}\" belongs to lease \"{owner}\"; \
                 give each lease resources of its own"
            ),
            Self::Future {
                resource,
                lease,
                token,
                horizon: Horizon::Granted(highest),
            } => write!(
                f,
                "refused: token {token} is from the future for \"{resource}\": by its record beside the mark, lease \
                 \"{lease}\" has granted at most {highest}; check where the token comes from; if the lease is in another \
                 store, name that one (--store URL; in a program, Leases::Elsewhere)"
            ),
            Self::Future {
                resource,
                token,
                horizon: Horizon::Clock(highest),
                ..
            } => write!(
                f,
                "refused: token {token} is from the future for \"{resource}\": by the clock none is above \
                 {highest}; check where the token comes from, or raise the mark to just below it (tenure fence bump)"
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FenceError {}

impl From<StoreError> for FenceError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
