//! A lost reply costs no second term: a held lease that is asked for again by its own attempt keeps its
//! token, and after its release the attempt takes nothing any more.

use super::{Assumes, Law, Truth, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "a-lost-reply-costs-no-second-term",
    guarantee: "G13",
    source: "I18",
    assumes: Assumes::Store,
};

/// What one attempt has been granted.
#[derive(Clone, Copy, Default, Debug)]
pub struct OneTermPerAttempt;

impl OneTermPerAttempt {
    /// Attempt `attempt` of process `holder` was granted `token` at `clock_ms`; `before` was the record.
    ///
    /// # Errors
    /// [`Breach`](super::Breach) if the same attempt held the lease by another token, or had released it.
    pub fn granted(before: Option<Truth>, holder: u64, attempt: u64, token: u64, clock_ms: u64) -> Verdict {
        let Some(before) = before else { return Ok(()) };
        let same = before.holder == holder && before.attempt == attempt;
        let second = before.released || (before.is_held(clock_ms) && before.token != token);
        hold(&LAW, !(same && second), || {
            format!("attempt {attempt} of process {holder} was granted token {token} after {before:?}")
        })
    }
}
