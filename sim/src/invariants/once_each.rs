//! Each term begins once and ends once.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "each-term-begins-and-ends-once",
    guarantee: "G12",
    source: "I11",
    assumes: Assumes::Nothing,
};

/// The terms that one process was told of, for one lease.
#[derive(Clone, Copy, Default, Debug)]
pub struct OnceEach {
    open: u64,
    latest: u64,
}

impl OnceEach {
    /// A term was told to have begun.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if one is open.
    pub fn began(&mut self, token: u64) -> Verdict {
        let before = *self;
        (self.open, self.latest) = (token, token);
        hold(&LAW, before.open == 0, || {
            format!("token {token} began while {before:?}")
        })
    }

    /// Before a term begins: whether it has not been the latest before. Where no token is given twice.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it has.
    pub fn is_new(&self, token: u64) -> Verdict {
        hold(&LAW, self.latest != token, || {
            format!("token {token} began a second time")
        })
    }

    /// A term was told to have ended.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if it is not the one that is open.
    pub fn ended(&mut self, token: u64) -> Verdict {
        let before = *self;
        self.open = 0;
        hold(&LAW, before.open == token, || {
            format!("token {token} ended while {before:?}")
        })
    }

    /// Whether the latest term that was told of is this one.
    #[must_use]
    pub fn has_begun(&self, token: u64) -> bool {
        self.latest == token
    }

    /// After a step: whether belief is in the open term, and in none where none is open.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if not.
    pub fn believes(&self, token: u64) -> Verdict {
        hold(&LAW, self.open == token, || {
            format!(
                "token {token} is believed in, and token {} was told to be open",
                self.open
            )
        })
    }
}
