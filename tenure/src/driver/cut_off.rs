//! Terms of this process that were cut off, and that the store still holds for it.
//!
//! Whoever comes next in this process takes the lease from such a term as from one that was handed on: to the
//! store it is a later attempt of the same holder, which gave the term before up. Whether its work had ended,
//! only this process knows.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tenure_core::{Cause, End, Event, FencingToken, Grant, LeaseName, Moment};

#[derive(Default)]
pub(super) struct CutOff {
    terms: BTreeMap<LeaseName, FencingToken>,
    /// Until when each is kept, in that order.
    kept: VecDeque<(Moment, LeaseName, FencingToken)>,
}

impl CutOff {
    /// Notes the end of a term, or tells a grant how the term before it has ended.
    pub(super) fn amend(&mut self, event: &mut Event, now: Moment, ttl: Duration) {
        match event {
            Event::Ended { name, token, cause } if is_cut_off(cause) => self.note(name, *token, now, ttl),
            Event::Acquired { name, grant, .. } => self.tell(name, grant),
            _ => {}
        }
    }

    fn note(&mut self, name: &LeaseName, token: FencingToken, now: Moment, ttl: Duration) {
        while self.kept.front().is_some_and(|(until, ..)| *until <= now)
            && let Some((_, name, token)) = self.kept.pop_front()
        {
            if self.terms.get(&name) == Some(&token) {
                self.terms.remove(&name);
            }
        }
        self.terms.insert(name.clone(), token);
        // The store has ended it by itself before that, and says so.
        self.kept.push_back((now.after(2 * ttl), name.clone(), token));
    }

    fn tell(&mut self, name: &LeaseName, grant: &mut Grant) {
        let cut_off = self.terms.remove(name);
        if let Some(before) = &mut grant.predecessor
            && cut_off == Some(before.token)
        {
            before.end = End::Expired;
        }
    }
}

/// Whether belief ended under the work, while the record may still be the term's. In any other case the store
/// tells how it ended.
fn is_cut_off(cause: &Cause) -> bool {
    match cause {
        Cause::Deadline(_) | Cause::NoProgress(_) | Cause::MaxHold(_) => true,
        Cause::GivenBack | Cause::Succeeded { .. } | Cause::Vanished => false,
    }
}
