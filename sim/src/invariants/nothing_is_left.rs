//! A withdrawn campaign leaves nothing behind: what its requests took before it was withdrawn is found and released.

use super::{Assumes, Law, Truth, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "withdrawal-leaves-nothing",
    guarantee: "G13",
    source: "I18",
    assumes: Assumes::RateStepStore,
};

/// Whether a process that said that its campaign is over holds the lease by no term that it began before it was
/// told to withdraw: `releasing` says that a release is on its way. `clock_ms` is when it would have looked again.
///
/// What a request of it takes later, having been overtaken by the look that searched for it, or a late duplicate of a
/// request that was answered before, is held until it expires: nothing can be promised of it.
///
/// # Errors
/// [`Breach`](super::Breach) if the lease is held by nobody who knows.
pub fn nothing_is_left(
    truth: Option<Truth>,
    (holder, attempt): (u64, u64),
    clock_ms: u64,
    releasing: bool,
) -> Verdict {
    let left = truth.filter(|truth| {
        truth.holder == holder && truth.attempt == attempt && truth.is_held(clock_ms) && !releasing
    });
    hold(&LAW, left.is_none(), || {
        format!("process {holder} withdrew and left {left:?}, held still at {clock_ms} ms")
    })
}
