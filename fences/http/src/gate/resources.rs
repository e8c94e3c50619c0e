//! The resources that a gate knows.

use super::seat::Seat;
use super::warnings::Warnings;
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::ResourceName;

/// Most resources that a gate keeps in memory, at about 300 bytes each. Beyond it, those that nobody is
/// inside of are forgotten; their marks are still in the fence.
const RESOURCES_MAX: usize = 100_000;

#[derive(Default)]
pub(super) struct Resources {
    seats: Mutex<BTreeMap<ResourceName, Arc<Seat>>>,
    warnings: Arc<Mutex<Warnings>>,
}

impl Resources {
    /// Whether the fence has told of a mark for it; it may have one that this gate does not know yet.
    pub(super) fn has_mark(&self, resource: &ResourceName) -> bool {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.get(resource).is_some_and(|seat| seat.mark().is_some())
    }

    pub(super) fn seat(&self, resource: &ResourceName) -> Result<Arc<Seat>, Refusal> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seat) = seats.get(resource) {
            return Ok(Arc::clone(seat));
        }
        if seats.len() >= RESOURCES_MAX {
            // Whoever is inside, waits or claims has a clone, and clones come from this map only.
            seats.retain(|_, seat| Arc::strong_count(seat) > 1);
        }
        if seats.len() >= RESOURCES_MAX {
            return Err(Refusal::Crowded {
                resource: resource.clone(),
            });
        }
        let seat = Arc::new(Seat::new(resource.clone(), Arc::clone(&self.warnings)));
        seats.insert(resource.clone(), Arc::clone(&seat));
        Ok(seat)
    }
}
