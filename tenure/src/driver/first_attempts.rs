//! How many campaigns are begun at once.

use std::collections::{BTreeMap, BTreeSet};
use tenure_core::LeaseName;

/// First attempts that a driver sends at once; the others wait for an answer.
///
/// A process may want a thousand locks in one moment. Sent all at once, the last requests would be given up
/// before the store comes to them, and be sent again, for ever.
const FIRST_ATTEMPTS_MAX: usize = 32;

/// Campaigns that are about to begin.
#[derive(Default)]
pub(super) struct FirstAttempts {
    under_way: BTreeSet<LeaseName>,
    /// In the order in which they came.
    held_back: BTreeMap<u64, LeaseName>,
    /// What comes before them may take a ttl, as what of the engine's is still to be released or found first,
    /// or a pause: they keep nobody else waiting.
    parked: BTreeMap<LeaseName, u64>,
    places: BTreeMap<LeaseName, u64>,
    next: u64,
}

/// What may be done with the next of those that are about to begin.
pub(super) enum Readiness {
    Ready,
    /// Something comes before it.
    Leaving,
    /// Nobody wants it any more.
    Unwanted,
}

/// The next of those that are about to begin.
pub(super) enum Next {
    Begin(LeaseName),
    /// It waits aside until it is [called](FirstAttempts::call); by its number it can be told from a later
    /// one.
    Parked(LeaseName, u64),
}

impl FirstAttempts {
    /// Lets a campaign begin, in its turn.
    pub(super) fn want(&mut self, name: LeaseName) {
        if !self.places.contains_key(&name) && !self.parked.contains_key(&name) {
            self.held_back.insert(self.next, name.clone());
            self.places.insert(name, self.next);
            self.next += 1;
        }
    }

    /// The next campaign to begin now, or to wait aside.
    pub(super) fn next(&mut self, readiness: impl Fn(&LeaseName) -> Readiness) -> Option<Next> {
        while self.under_way.len() < FIRST_ATTEMPTS_MAX {
            let (number, name) = self.held_back.pop_first()?;
            self.places.remove(&name);
            match readiness(&name) {
                Readiness::Ready => {
                    self.under_way.insert(name.clone());
                    return Some(Next::Begin(name));
                }
                Readiness::Leaving => {
                    self.parked.insert(name.clone(), number);
                    return Some(Next::Parked(name, number));
                }
                Readiness::Unwanted => {}
            }
        }
        None
    }

    /// It was under way in vain, and waits aside until it is [called](Self::call).
    pub(super) fn put_off(&mut self, name: LeaseName) {
        self.under_way.remove(&name);
        self.parked.insert(name, self.next);
        self.next += 1;
    }

    /// What came before it is over: it has its turn again, among those that wait for theirs by its number.
    pub(super) fn call(&mut self, name: &LeaseName) {
        if let Some(number) = self.parked.remove(name) {
            self.held_back.insert(number, name.clone());
            self.places.insert(name.clone(), number);
        }
    }

    /// By which number it is held back, if it is.
    pub(super) fn held_back(&self, name: &LeaseName) -> Option<u64> {
        self.places.get(name).copied()
    }

    /// Whether it still waits aside by this number.
    pub(super) fn is_parked(&self, name: &LeaseName, number: u64) -> bool {
        self.parked.get(name) == Some(&number)
    }

    /// The attempt was answered, or is wanted no longer.
    pub(super) fn done(&mut self, name: &LeaseName) {
        self.under_way.remove(name);
        self.parked.remove(name);
        if let Some(place) = self.places.remove(name) {
            self.held_back.remove(&place);
        }
    }
}
