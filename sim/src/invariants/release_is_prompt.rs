//! Who gives a lease back tells the store in the same step, and until it has heard: a hand-over takes no
//! longer than its messages.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "release-follows-at-once",
    guarantee: "G17",
    source: "I13",
    assumes: Assumes::Nothing,
};

pub(super) const PERSISTENCE_LAW: Law = Law {
    name: "release-is-seen-through",
    guarantee: "G17",
    source: "I13",
    assumes: Assumes::Nothing,
};

/// Whether a step that ended the term with `token` because it was given back sent its release: `sent` says
/// so.
///
/// # Errors
/// [`Breach`](super::Breach) if it did not.
pub fn release_is_prompt(token: u64, sent: bool) -> Verdict {
    hold(&LAW, sent, || {
        format!("token {token} was given back, and no release was sent")
    })
}

/// Whether a process that at `local` gives up a release that failed could not have tried it once more,
/// `retry_every` later, while its term would have lasted: until `until`. Nanoseconds of its own clock.
///
/// The lease itself lasts longer by the margin, so that this is less than the engine promises.
///
/// # Errors
/// [`Breach`](super::Breach) if it could have.
pub fn release_is_seen_through(local: u64, retry_every: u64, until: u64) -> Verdict {
    hold(
        &PERSISTENCE_LAW,
        local.saturating_add(retry_every) >= until,
        || {
            format!(
                "a release was given up at {local} ns, though its term would have lasted until {until} ns"
            )
        },
    )
}
