use super::{FencingToken, LeaseName};
use std::fmt;

/// One term of one lease: what its work shows to every fence.
///
/// Tokens of two leases cannot be compared, so a token travels with the name of the lease that gave it. A
/// fence keeps the name with its mark and refuses the term of any other lease.
///
/// Cheap to clone. Effect on authority: none; that somebody has this value proves nothing, the fence decides.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term {
    /// The lease.
    pub lease: LeaseName,
    /// The number of the term.
    pub token: FencingToken,
}

impl Term {
    /// The term of `lease` with this token.
    #[must_use]
    pub fn new(lease: LeaseName, token: FencingToken) -> Self {
        Self { lease, token }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {} of \"{}\"", self.token, self.lease)
    }
}
