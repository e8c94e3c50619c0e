//! "Another holder seen" ends a term, "no answer" at the deadline and not before, and only what a person must
//! mend ends a campaign.

use super::{Assumes, Law, Truth, Verdict, hold};
use tenure_core::{Cause, StoreError};

pub(super) const LAW: Law = Law {
    name: "end-has-a-reason",
    guarantee: "G11",
    source: "I14",
    // A clock that steps forward and back ends a lease and revives it, before its holder hears of either.
    assumes: Assumes::RateStepStore,
};

pub(super) const CAMPAIGN_LAW: Law = Law {
    name: "only-a-misconfiguration-ends-a-campaign",
    guarantee: "G11",
    source: "I13",
    assumes: Assumes::Nothing,
};

pub(super) const LOSS_LAW: Law = Law {
    name: "loss-seen-ends-the-term",
    guarantee: "G11",
    source: "I2",
    assumes: Assumes::Nothing,
};

/// Whether a term (holder and token) that ended for `cause` had that reason: the record is over, or the
/// deadline has come.
///
/// `left` is what remained of the belief, by the process's own clock, in nanoseconds.
///
/// # Errors
/// [`Breach`](super::Breach) if the term is as sound as it was.
pub fn end_has_a_reason(
    cause: &Cause,
    term: (u64, u64),
    truth: Option<Truth>,
    clock_ms: u64,
    left: u64,
) -> Verdict {
    let sound = match cause {
        Cause::GivenBack => true,
        Cause::Deadline(_) | Cause::NoProgress(_) | Cause::MaxHold(_) => left == 0,
        Cause::Succeeded { .. } | Cause::Vanished => {
            !truth.is_some_and(|truth| (truth.holder, truth.token) == term && truth.is_held(clock_ms))
        }
    };
    hold(&LAW, sound, || {
        format!(
            "token {} of process {} ended ({cause:?}) with {left} ns left, while the record is {truth:?} at {clock_ms} ms",
            term.1, term.0
        )
    })
}

/// Whether the error that ended a campaign is one that only a person can mend.
///
/// # Errors
/// [`Breach`](super::Breach) if it is not.
pub fn campaign_end_is_a_misconfiguration(error: &StoreError) -> Verdict {
    hold(&CAMPAIGN_LAW, error.fault.is_final(), || {
        format!("a campaign ended by {:?}", error.fault)
    })
}

/// Whether a process that was told that its term with `token` is over believes in it no more: `believed` is
/// the token that it believes in afterwards. 0 is no term.
///
/// # Errors
/// [`Breach`](super::Breach) if it believes on.
pub fn loss_ends_the_term(token: u64, believed: u64) -> Verdict {
    hold(&LOSS_LAW, token == 0 || token != believed, || {
        format!("token {token} is believed in after it was seen to be over")
    })
}
