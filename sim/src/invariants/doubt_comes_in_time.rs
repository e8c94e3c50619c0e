//! A holder is told that its term is near its end while there is as much time left as it has asked for.

use super::{Assumes, Believed, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "doubt-comes-in-time",
    guarantee: "G15",
    source: "I2",
    assumes: Assumes::Nothing,
};

/// Whether a process that was stepped at `local` and sleeps until `wake` has been told of its doubt
/// (`doubted`), or will be when there is `grace` left of what it believes. Nanoseconds of its own clock.
///
/// # Errors
/// [`Breach`](super::Breach) if not.
pub fn doubt_comes_in_time(believed: Believed, doubted: bool, grace: u64, local: u64, wake: u64) -> Verdict {
    let from = believed.until_local.saturating_sub(grace);
    let asked = believed.token != 0 && grace != 0;
    hold(&LAW, !asked || doubted || local < from && wake <= from, || {
        format!("at {local} ns no doubt is told, it sleeps until {wake} ns, and doubt begins at {from} ns")
    })
}
