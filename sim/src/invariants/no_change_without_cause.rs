//! A term ends only by expiry, by its own release, by a later attempt of its holder, or by an operator; and
//! no attempt takes the lease after a later one of the same process, whatever has become of that.

use super::{Assumes, Law, Truth, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "no-change-without-cause",
    guarantee: "G8",
    source: "I8",
    assumes: Assumes::Store,
};

/// Whether a record that went from `before` to `after` at `clock_ms`, by a request to take it, had a cause
/// to.
///
/// # Errors
/// [`Breach`](super::Breach) if the term before was held, and not by an earlier attempt of the same process;
/// or if it was of a later attempt of that process.
pub fn no_change_without_cause(before: Option<Truth>, after: Option<Truth>, clock_ms: u64) -> Verdict {
    let (Some(before), Some(after)) = (before, after) else {
        return hold(&LAW, after.is_some() || before.is_none(), || {
            format!("the record of {before:?} is gone")
        });
    };
    let same = before.is_term(after.holder, after.token, after.attempt);
    let own = before.holder == after.holder && before.attempt < after.attempt;
    let falls = before.holder == after.holder && before.attempt > after.attempt;
    hold(&LAW, !falls && (same || own || !before.is_held(clock_ms)), || {
        format!("{before:?} became {after:?} at {clock_ms} ms without a cause")
    })
}
