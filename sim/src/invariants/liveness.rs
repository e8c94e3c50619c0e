//! After the faults: somebody leads within the promised time, stays, and survives a short outage.

use super::{Assumes, Law, Verdict, hold};
use std::time::Duration;

pub(super) const TAKEOVER_LAW: Law = Law {
    name: "somebody-leads-in-time",
    guarantee: "G17",
    source: "I13, I15",
    assumes: Assumes::RateStepStore,
};

pub(super) const STABILITY_LAW: Law = Law {
    name: "no-fault-no-change",
    guarantee: "G8",
    source: "I14",
    assumes: Assumes::RateStepStore,
};

pub(super) const OUTAGE_LAW: Law = Law {
    name: "short-outage-costs-nothing",
    guarantee: "G15",
    source: "I14",
    assumes: Assumes::RateStepStore,
};

/// Whether somebody leads: `leader` is the token that is believed in, 0 for none, `within` after the faults
/// ended.
///
/// # Errors
/// [`Breach`](super::Breach) if nobody does.
pub fn leader_exists(leader: u64, within: Duration) -> Verdict {
    hold(&TAKEOVER_LAW, leader != 0, || {
        format!("nobody leads {within:?} after the last fault")
    })
}

/// Whether the leader is the same as it was before a time without faults.
///
/// # Errors
/// [`Breach`](super::Breach) if it is not.
pub fn leader_is_stable(before: u64, after: u64) -> Verdict {
    hold(&STABILITY_LAW, before == after, || {
        format!("token {before} led, and token {after} leads, without any fault between")
    })
}

/// Whether the leader is the same as it was before an outage of the store that is to cost nothing.
///
/// # Errors
/// [`Breach`](super::Breach) if it is not.
pub fn outage_is_survived(before: u64, after: u64, outage: Duration) -> Verdict {
    hold(&OUTAGE_LAW, before == after, || {
        format!("token {before} led before an outage of {outage:?}, and token {after} leads after it")
    })
}
