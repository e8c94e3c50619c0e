//! Belief ends at its deadline: nothing that comes later extends it, and nothing extends it beyond what the
//! store granted, counted from before the request was sent.

use super::belief_is_sound::Believed;
use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "belief-never-extends-late",
    guarantee: "G3",
    source: "I2",
    assumes: Assumes::Nothing,
};

pub(super) const BEGINNING_LAW: Law = Law {
    name: "late-grant-begins-no-term",
    guarantee: "G3",
    source: "I2",
    assumes: Assumes::Nothing,
};

/// What a store has granted, by the clock of the process that asked. Nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension {
    /// When the process sent the request.
    pub sent_local: u64,
    /// What the store granted.
    pub ttl: u64,
}

/// Whether a step at `local` left belief where it was, shortened it, or extended it by what was granted.
///
/// `extension` is what the input of the step granted for this lease, if it was an answer that did.
///
/// # Errors
/// [`Breach`](super::Breach) if belief came from nothing, came back after its deadline, or goes beyond the
/// grant.
pub fn belief_never_extends_late(
    before: Believed,
    after: Believed,
    extension: Option<Extension>,
    local: u64,
) -> Verdict {
    let extended =
        after.token != 0 && (after.token != before.token || after.until_local > before.until_local);
    if !extended {
        let revived = after.token != 0 && local >= after.until_local;
        return hold(&LAW, !revived, || {
            format!(
                "a step at {local} ns left a belief in token {} that had ended",
                after.token
            )
        });
    }
    let in_time = after.token != before.token || local < before.until_local;
    let bounded =
        extension.is_some_and(|granted| after.until_local <= granted.sent_local.saturating_add(granted.ttl));
    let alive = local < after.until_local;
    hold(&LAW, in_time && bounded && alive, || {
        format!(
            "at {local} ns belief went from {before:?} to {after:?}; what the store granted: {extension:?}"
        )
    })
}

/// Whether an authority that was asked for at `local` says what is believed: the token of the belief until
/// its deadline, and nothing from then on. `answered` is the token that it gave, 0 for none.
///
/// # Errors
/// [`Breach`](super::Breach) if it says anything else.
pub fn authority_ends_at_the_deadline(answered: u64, believed: Believed, local: u64) -> Verdict {
    let over = local >= believed.until_local;
    let right = if over { 0 } else { believed.token };
    hold(&LAW, answered == right, || {
        format!("at {local} ns authority gave token {answered}, while {believed:?}")
    })
}

/// Whether a term that an engine reports as begun at `local` has any time left: it ends at `until_local`.
///
/// # Errors
/// [`Breach`](super::Breach) if it was over before it was reported.
pub fn late_grant_begins_no_term(until_local: u64, local: u64) -> Verdict {
    hold(&BEGINNING_LAW, local < until_local, || {
        format!("a term that ended at {until_local} ns was reported as begun at {local} ns")
    })
}
