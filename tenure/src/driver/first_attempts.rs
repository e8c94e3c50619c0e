//! How many campaigns are begun at once.

use std::collections::{BTreeMap, BTreeSet};
use tenure_core::LeaseName;

/// First attempts that a driver sends at once; the others wait for an answer.
///
/// A process may want a thousand locks in one moment. Sent all at once, the last requests would be given up before
/// the store comes to them, and be sent again, for ever.
const FIRST_ATTEMPTS_MAX: usize = 32;

/// Campaigns that are about to begin.
#[derive(Default)]
pub(super) struct FirstAttempts {
    under_way: BTreeSet<LeaseName>,
    /// In the order in which they came.
    held_back: BTreeMap<u64, LeaseName>,
    places: BTreeMap<LeaseName, u64>,
    next: u64,
}

impl FirstAttempts {
    /// Lets a campaign begin, in its turn.
    pub(super) fn want(&mut self, name: LeaseName) {
        if !self.places.contains_key(&name) {
            self.held_back.insert(self.next, name.clone());
            self.places.insert(name, self.next);
            self.next += 1;
        }
    }

    /// The next campaign to begin now, of those that are still wanted.
    pub(super) fn next(&mut self, is_wanted: impl Fn(&LeaseName) -> bool) -> Option<LeaseName> {
        while self.under_way.len() < FIRST_ATTEMPTS_MAX {
            let (_, name) = self.held_back.pop_first()?;
            self.places.remove(&name);
            if is_wanted(&name) {
                self.under_way.insert(name.clone());
                return Some(name);
            }
        }
        None
    }

    /// The attempt was answered, or is wanted no longer.
    pub(super) fn done(&mut self, name: &LeaseName) {
        self.under_way.remove(name);
        if let Some(place) = self.places.remove(name) {
            self.held_back.remove(&place);
        }
    }
}
