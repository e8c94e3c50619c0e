//! Terms that were won, and that nobody has taken up yet.
//!
//! Whoever campaigns is told by its future, and a future that nobody polls takes nothing up: the lease would
//! be renewed, for nobody, for as long as that future exists. So what was not taken up within one ttl is
//! given back.

use super::milliseconds;
use crate::term::SharedTerm;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{FencingToken, LeaseName, Moment};

/// As many are kept without a look at which of them are settled by now.
const KEPT: usize = 64;

/// Terms on offer, in the order in which they are to be given back.
#[derive(Default)]
pub(super) struct Offers {
    offers: VecDeque<Offer>,
    /// With as many, those that are settled are let go of.
    look_at: usize,
}

struct Offer {
    due: Moment,
    name: LeaseName,
    term: Arc<SharedTerm>,
}

impl Offer {
    /// Whether there is nothing to give back.
    fn is_settled(&self) -> bool {
        self.term.is_settled() || self.term.has_been_ended()
    }
}

impl Offers {
    /// One more, which is to be given back no earlier than those before it.
    pub(super) fn add(&mut self, due: Moment, name: LeaseName, term: Arc<SharedTerm>) {
        if self.offers.len() >= self.look_at {
            self.offers.retain(|offer| !offer.is_settled());
            self.look_at = (2 * self.offers.len()).max(KEPT);
        }
        self.offers.push_back(Offer { due, name, term });
    }

    /// When the first is to be given back that nobody has taken up.
    pub(super) fn due(&mut self) -> Option<Moment> {
        while self.offers.front().is_some_and(Offer::is_settled) {
            self.offers.pop_front();
        }
        self.offers.front().map(|offer| offer.due)
    }

    /// The next whose time is over. Nobody takes it up from now on.
    pub(super) fn next_over(&mut self, now: Moment) -> Option<(LeaseName, FencingToken)> {
        while self.offers.front().is_some_and(|offer| offer.due <= now)
            && let Some(offer) = self.offers.pop_front()
        {
            if !offer.is_settled() && offer.term.settle() {
                offer.term.end_belief();
                return Some((offer.name, offer.term.token()));
            }
        }
        None
    }
}

/// Writes to `tracing`, target `tenure`, that nobody has taken up a term for a ttl.
pub(crate) fn announce_not_taken_up(candidate: &str, name: &LeaseName, token: FencingToken, ttl: Duration) {
    tracing::warn!(target: "tenure", lease = %name, candidate, token = token.number(),
        ttl_ms = milliseconds(ttl), "Won and not taken up for a ttl, as its future is not polled; given back");
}
