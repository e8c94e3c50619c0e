//! A request never outlasts the term that it is to extend.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "no-request-outlasts-its-term",
    guarantee: "G19",
    source: "I20",
    assumes: Assumes::Nothing,
};

/// Whether a renewal that is given up at `give_up` is so by the end of every term in it: `until` is the
/// soonest. Nanoseconds of the process's clock.
///
/// # Errors
/// [`Breach`](super::Breach) if it goes on after it.
pub fn no_request_outlasts(give_up: u64, until: u64) -> Verdict {
    hold(&LAW, give_up <= until, || {
        format!("a renewal is waited for until {give_up} ns, its term ends at {until} ns")
    })
}
