//! Tokens of a name only rise, and none is given twice.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "tokens-rise",
    guarantee: "G4",
    source: "I4",
    assumes: Assumes::StoreOrClock,
};

/// The highest token of a name.
#[derive(Clone, Copy, Default, Debug)]
pub struct TokensRise {
    highest: u64,
    promised: Promised,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Promised {
    #[default]
    Yes,
    /// The store forgot tokens: the next one rises by its clock only. From that one on the record counts
    /// again.
    ByClock,
    /// Its clock was not ahead of the last token when it gave the next: nothing is promised any more.
    No,
}

impl TokensRise {
    /// The store forgot what it had acknowledged, or a record was cleaned up.
    pub fn forgot(&mut self) {
        if self.promised == Promised::Yes {
            self.promised = Promised::ByClock;
        }
    }

    /// Whether tokens, and with them the fence, are promised still.
    #[must_use]
    pub fn promised(&self) -> bool {
        self.promised != Promised::No
    }

    /// The store granted a new term when its clock showed `clock_ms`.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if the token is not greater than every one before.
    pub fn granted(&mut self, token: u64, clock_ms: u64) -> Verdict {
        let highest = self.highest;
        self.highest = highest.max(token);
        if self.promised == Promised::ByClock && clock_ms <= highest {
            self.promised = Promised::No;
        }
        let sound = token > highest || !self.promised();
        if self.promised == Promised::ByClock && sound {
            self.promised = Promised::Yes;
        }
        hold(&LAW, sound, || {
            format!("token {token} was granted after token {highest}")
        })
    }
}
