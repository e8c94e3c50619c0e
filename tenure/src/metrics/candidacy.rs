//! A program that wants to lead for as long as it runs, whatever its elections do.

use super::Meter;
use tenure_core::{LeaseName, StoreError};

/// That a program wants a lease: while it waits for the store to be opened, and also between two campaigns.
/// Told until this is dropped.
pub struct Candidacy {
    name: LeaseName,
    meter: Meter,
}

impl Candidacy {
    /// For the lease of an election.
    #[must_use]
    pub fn of_election(name: &LeaseName) -> Self {
        let mut meter = Meter::of_election(name);
        meter.wanted(name, true);
        let name = name.clone();
        Self { name, meter }
    }

    /// For one that is told with all locks, as by
    /// [`metrics_with_all_locks`](crate::ElectionBuilder::metrics_with_all_locks).
    #[must_use]
    pub fn of_lock(name: &LeaseName) -> Self {
        let (name, meter) = (name.clone(), Meter::of_locks());
        Self { name, meter }
    }

    /// An attempt to open the store has failed.
    pub fn not_opened(&mut self, error: &StoreError) {
        self.meter.not_opened(&self.name, error);
    }

    /// The store is open.
    pub fn opened(&mut self) {
        self.meter.reached();
    }
}
