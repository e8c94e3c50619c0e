//! A holder that is asked to step down is told so by whatever it hears first of the wish: a renewal, or the
//! watch.

use super::{Assumes, Law, Verdict, hold};

pub(super) const LAW: Law = Law {
    name: "wish-is-told",
    guarantee: "G10",
    source: "I12",
    assumes: Assumes::Nothing,
};

/// Whether a process that heard of a wish for its term with `token` has begun to end it: `ending` is the
/// token of the term that it was told to end, or that it ends by itself, and `believed` the one that it
/// believes in afterwards.
///
/// # Errors
/// [`Breach`](super::Breach) if it leads on as if nobody had asked.
pub fn wish_is_told(token: u64, believed: u64, ending: u64) -> Verdict {
    let concerned = token != 0 && token == believed;
    hold(&LAW, !concerned || ending == token, || {
        format!("the holder of token {token} heard of a wish, and was not told of it")
    })
}
