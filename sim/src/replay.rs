//! One seed again.

use crate::narrate::Narrator;
use crate::outcome::Outcome;
use crate::plan::{Edit, Plan};
use crate::world::World;

/// Runs one seed, edited, and tells it to `narrator` if there is one.
#[must_use]
pub fn replay(seed: u64, edit: &Edit, mut narrator: Option<Narrator<'_>>) -> Outcome {
    let plan = Plan::of_seed(seed, edit);
    World::new(
        &plan,
        edit.keep.as_deref(),
        narrator.as_mut().map(Narrator::for_now),
    )
    .run()
}

/// The trace hash of each of these seeds: equal for equal seeds, whatever the build and the machine.
#[must_use]
pub fn determinism(seeds: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    seeds
        .map(|seed| (seed, replay(seed, &Edit::default(), None).trace_hash))
        .collect()
}
