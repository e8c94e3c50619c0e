//! An engine that was stepped has nothing to do until later: otherwise its driver would spin.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "engine-sleeps",
    guarantee: "G18",
    source: "I13",
    assumes: Assumes::Nothing,
};

/// Whether the wake-up that a step at `local` asked for lies after it. Nanoseconds of the process's clock.
///
/// # Errors
/// [`Breach`](super::Breach) if it does not.
pub fn engine_sleeps(local: u64, wake: u64) -> Verdict {
    hold(&LAW, wake > local, || {
        format!("a step at {local} ns asked to be woken at {wake} ns: a driver would spin")
    })
}
