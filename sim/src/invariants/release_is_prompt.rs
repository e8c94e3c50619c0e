//! Who gives a lease back tells the store in the same step: a hand-over takes no longer than its messages.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "release-follows-at-once",
    guarantee: "G17",
    source: "I13",
    assumes: Assumes::Nothing,
};

/// Whether a step that ended the term with `token` because it was given back sent its release: `sent` says so.
///
/// # Errors
/// [`Breach`](super::Breach) if it did not.
pub fn release_is_prompt(token: u64, sent: bool) -> Verdict {
    hold(&LAW, sent, || {
        format!("token {token} was given back, and no release was sent")
    })
}
