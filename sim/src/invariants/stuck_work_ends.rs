//! A worker that reports no progress does not lead for ever.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "stuck-work-ends",
    guarantee: "G22",
    source: "I13",
    assumes: Assumes::Nothing,
};

/// Whether belief ends within the gate, one renewal interval and one ttl after the last progress.
///
/// All in nanoseconds of the process's clock; `ttl` is the longest that the store grants.
///
/// # Errors
/// [`Breach`](super::Breach) if it goes on for longer.
pub fn stuck_work_ends(until: u64, progress: u64, within: u64, renew_every: u64, ttl: u64) -> Verdict {
    let latest = progress
        .saturating_add(within)
        .saturating_add(renew_every)
        .saturating_add(ttl);
    hold(&LAW, until <= latest, || {
        format!(
            "belief lasts until {until} ns; the last progress was at {progress} ns, the gate is {within} ns and the \
             ttl {ttl} ns"
        )
    })
}
