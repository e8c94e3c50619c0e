//! The fence before the data: what it decides is decided by the core's own rules, as in every fence that
//! ships.

use crate::local::lease_name;
use crate::names::token_of;
use std::sync::LazyLock;
use tenure_core::{FencingToken, Horizon, ResourceName, Term, decide_claim, decide_entry};

/// Most tokens that a state refers to, and none.
const TOKENS: u8 = 32;

/// What is asked millions of times, once.
struct Names {
    resource: ResourceName,
    /// The terms, by their tokens; that of no token stands for nobody.
    terms: Vec<Term>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names {
    resource: ResourceName::new("data").expect("a valid name"),
    terms: (0..TOKENS)
        .map(|token| Term::new(lease_name(), token_of(token)))
        .collect(),
});

/// Whether a term may claim after the one with the mark, 0 for none.
pub(crate) fn may_claim(token: u8, mark: u8) -> bool {
    let (term, mark) = (&NAMES.terms[usize::from(token)], marked(mark));
    // Without a clock: every token may have been granted.
    let horizon = Horizon::Clock(FencingToken::MAX);
    decide_claim(&NAMES.resource, term, mark.map(|_| &term.lease), mark, horizon).is_ok()
}

/// Whether a term may write while the fence stands at this mark, 0 for none.
pub(crate) fn may_write(token: u8, mark: u8) -> bool {
    let (term, mark) = (&NAMES.terms[usize::from(token)], marked(mark));
    decide_entry(&NAMES.resource, term, mark.map(|_| &term.lease), mark).is_ok()
}

fn marked(mark: u8) -> Option<FencingToken> {
    (mark != 0).then(|| token_of(mark))
}
