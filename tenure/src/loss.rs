use std::fmt;
use tenure_core::{Candidate, Cause, FencingToken, LeaseName};

/// A term is over, of an election or of a lock: another may hold the lease. Its work must stop: what it still writes is refused
/// by a fence, and by nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The lease.
    pub name: LeaseName,
    /// The token of the term that is over.
    pub token: FencingToken,
    /// Why it ended.
    pub cause: Cause,
}

impl Loss {
    /// Why it ended, in words, for whoever has said already which term it was.
    #[must_use]
    pub fn why(&self) -> impl fmt::Display + '_ {
        Why(&self.cause)
    }
}

/// A cause, in words.
pub(crate) struct Why<'a>(pub(crate) &'a Cause);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::GivenBack => f.write_str("it was released"),
            Cause::Succeeded { token, by } => {
                let by = by.as_ref().map_or("another".to_owned(), Candidate::to_string);
                write!(f, "it passed to {by}, token {token}")
            }
            Cause::Vanished => f.write_str("it expired or was broken in the store"),
            Cause::Deadline(Some(error)) => {
                write!(f, "it could not be renewed before its deadline ({error})")
            }
            Cause::Deadline(None) => f.write_str("its deadline passed without a renewal"),
            Cause::NoProgress(idle_for) => {
                write!(f, "no progress for {idle_for:.0?}, so it was not renewed")
            }
            Cause::MaxHold(max) => write!(f, "it was held for {max:?}, the longest allowed (max_hold)"),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, token, cause } = self;
        let lost = match cause {
            Cause::GivenBack => "",
            _ => "lost: ",
        };
        write!(f, "lease \"{name}\", token {token}: {lost}{}", self.why())
    }
}

impl std::error::Error for Loss {}
