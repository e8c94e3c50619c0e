//! What changed between two looks, for a store that nobody tells of changes.

use super::{Change, WatchEvent};
use crate::{FencingToken, LeaseName};
use std::collections::BTreeMap;

/// As much of a lease as a [`Watch`](super::Watch) reports on. A renewal changes none of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Glance {
    /// The token of the last term.
    pub token: FencingToken,
    /// Whether that term was released.
    pub released: bool,
    /// Whether its holder was asked to step down.
    pub asked: bool,
}

/// The leases in a watch's scope at one look.
pub type Glances = BTreeMap<LeaseName, Glance>;

/// The events that lead from one look to the next; within a lease in the order in which they happened. Of
/// several terms between the looks, only the last is told.
#[must_use]
pub fn changes_between(before: &Glances, after: &Glances) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    let mut report = |name: &LeaseName, change: Change, token: Option<FencingToken>| {
        events.push(WatchEvent::Changed {
            name: name.clone(),
            change,
            token,
        });
    };
    for (name, old) in before {
        if !after.contains_key(name) {
            report(name, Change::Vacated, Some(old.token));
        }
    }
    for (name, new) in after {
        let old = before.get(name).filter(|old| old.token == new.token);
        if old.is_none() {
            report(name, Change::Taken, Some(new.token));
        }
        if new.asked && !old.is_some_and(|old| old.asked) {
            report(name, Change::Asked, Some(new.token));
        }
        if new.released && !old.is_some_and(|old| old.released) {
            report(name, Change::Vacated, Some(new.token));
        }
    }
    events
}
