//! What was seen of leases last. It is never believed: a transaction compares it before it changes anything.

use crate::found::Found;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::LeaseName;

/// Most leases that are remembered. When it is full, all are forgotten: that costs a request each.
const KNOWN_MAX: usize = 20_000;

/// What was seen last, and since when nobody held it.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashMap<LeaseName, Seen>>);

struct Seen {
    found: Found,
    free_since: Option<Instant>,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseName, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen last.
    pub(crate) fn last(&self, name: &LeaseName) -> Option<Found> {
        self.lock().get(name).map(|seen| seen.found.clone())
    }

    /// Remembers what was seen now.
    pub(crate) fn see(&self, name: &LeaseName, found: &Found) {
        let mut known = self.lock();
        let free = found.record.is_some() && found.holder.is_none();
        let before = known
            .get(name)
            .filter(|seen| seen.found.record_revision == found.record_revision)
            .and_then(|seen| seen.free_since);
        if found.record.is_none() {
            known.remove(name);
            return;
        }
        if known.len() >= KNOWN_MAX && !known.contains_key(name) {
            known.clear();
        }
        let seen = Seen {
            found: found.clone(),
            free_since: free.then(|| before.unwrap_or_else(Instant::now)),
        };
        known.insert(name.clone(), seen);
    }

    /// Forgets a lease: what it is now is not known.
    pub(crate) fn forget(&self, name: &LeaseName) {
        self.lock().remove(name);
    }

    /// How long nobody has held this term of the lease, as far as was seen here: at least.
    pub(crate) fn free_for(&self, name: &LeaseName, record_revision: i64) -> Duration {
        let known = self.lock();
        let seen = known
            .get(name)
            .filter(|seen| seen.found.record_revision == record_revision);
        seen.and_then(|seen| seen.free_since)
            .map_or(Duration::ZERO, |since| since.elapsed())
    }
}
