//! A renewal changes neither holder nor token, and revives nothing. A release ends its own term only.

use super::{Assumes, Law, Truth, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "renewal-is-inert",
    guarantee: "G9",
    source: "I10",
    assumes: Assumes::Nothing,
};

pub(super) const RELEASE_LAW: Law = Law {
    name: "release-touches-only-its-term",
    guarantee: "G8",
    source: "I9",
    assumes: Assumes::Nothing,
};

/// Whether a renewal of `term` (holder, token, attempt) at `clock_ms` did no more than extend that term.
///
/// # Errors
/// [`Breach`](super::Breach) if it changed holder, token or attempt, or made an expired or released lease
/// held.
pub fn renewal_is_inert(
    before: Option<Truth>,
    after: Option<Truth>,
    term: (u64, u64, u64),
    clock_ms: u64,
) -> Verdict {
    if before == after {
        return Ok(());
    }
    let sound = match (before, after) {
        (Some(before), Some(after)) => {
            before.is_term(term.0, term.1, term.2)
                && before.is_term(after.holder, after.token, after.attempt)
                && before.is_held(clock_ms)
                && !after.released
        }
        _ => false,
    };
    hold(&LAW, sound, || {
        format!("a renewal of {term:?} at {clock_ms} ms made {after:?} of {before:?}")
    })
}

/// Whether a release of `term` (holder, token, attempt) ended that term, or changed nothing.
///
/// # Errors
/// [`Breach`](super::Breach) if it changed any other term, or more than that.
pub fn release_touches_only_its_term(
    before: Option<Truth>,
    after: Option<Truth>,
    term: (u64, u64, u64),
) -> Verdict {
    if before == after {
        return Ok(());
    }
    let sound = before.is_some_and(|before| {
        before.is_term(term.0, term.1, term.2)
            && after.is_some_and(|after| {
                after
                    == Truth {
                        released: true,
                        ..before
                    }
            })
    });
    hold(&RELEASE_LAW, sound, || {
        format!("a release of {term:?} made {after:?} of {before:?}")
    })
}
