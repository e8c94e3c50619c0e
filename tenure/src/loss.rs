use std::fmt;
use tenure_core::{Cause, FencingToken, LeaseName};

/// A term is over, of an election or of a lock: another may hold the lease. Its work must stop: what it still
/// writes is refused by a fence, and by nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The lease.
    pub name: LeaseName,
    /// The token of the term that is over.
    pub token: FencingToken,
    /// Why it ended; displayed in words.
    pub cause: Cause,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, token, cause } = self;
        let lost = match cause {
            Cause::GivenBack => "",
            _ => "lost: ",
        };
        write!(f, "lease \"{name}\", token {token}: {lost}{cause}")
    }
}

impl std::error::Error for Loss {}
