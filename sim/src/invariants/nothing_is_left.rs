//! A withdrawn campaign leaves nothing behind: what its requests took is found and released, and none is
//! under way.

use super::{Assumes, Law, Truth, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "withdrawal-leaves-nothing",
    guarantee: "G13",
    source: "I18",
    assumes: Assumes::RateStepStore,
};

/// Whether a process that said that its campaign is over holds the lease by no term that it began before it
/// was told to withdraw: `releasing` says that a release is on its way. `clock_ms` is when it would have
/// looked again.
///
/// What a request of it takes later, after it was given up, or a late duplicate of a request that was
/// answered before, is held until it expires: nothing can be promised of it.
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

/// Whether a process says that its campaign is over only when it waits for none of its requests any more:
/// `give_up_local` is when it gives up the one that it asked for the lease by, 0 if that was answered. Before
/// that a look may see too little: the request may reach the store after it.
///
/// # Errors
/// [`Breach`](super::Breach) if the request may still be answered at `local`.
pub fn nothing_is_under_way(give_up_local: u64, local: u64) -> Verdict {
    hold(&LAW, give_up_local <= local, || {
        format!("a campaign ended at {local} while its request was awaited until {give_up_local}")
    })
}
