//! Many states at once: two threads expand them, then each enters half of what was found.

use crate::canonical::canonical;
use crate::catalogue::{Catalogue, Miss};
use crate::expand::{Successor, expand};
use crate::milestone::Milestones;
use crate::visited::{PARTS, StateId, Visited};
use crate::world::{Packed, World};
use std::thread;

/// What expanding states has shown.
#[derive(Default)]
pub(crate) struct Swept {
    pub(crate) transitions: u64,
    pub(crate) reached: Milestones,
    /// The first step that breaks a promise, and from where.
    pub(crate) violation: Option<(StateId, Successor)>,
    /// What was found, by the part to which it belongs.
    found: [Vec<(Packed, StateId)>; PARTS],
    /// States that need what has not been worked out yet.
    missed: Vec<StateId>,
    successors: Vec<Successor>,
    worlds: Vec<World>,
}

/// Expands these states and enters what they lead to.
pub(crate) fn sweep(catalogue: &mut Catalogue, visited: &mut Visited, states: &[StateId], all: &mut Swept) {
    let halves = states.split_at(states.len() / 2);
    let mut swept = {
        let (catalogue, visited) = (&*catalogue, &*visited);
        thread::scope(|scope| {
            let other = scope.spawn(|| Swept::of(catalogue, visited, halves.1));
            let own = Swept::of(catalogue, visited, halves.0);
            let other = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            [own, other, Swept::default()]
        })
    };
    // In the order of the states, so that situations are numbered alike in every run.
    let missed: Vec<StateId> = swept
        .iter_mut()
        .flat_map(|one| std::mem::take(&mut one.missed))
        .collect();
    let [.., rest] = &mut swept;
    for state in missed {
        while let Err(miss) = rest.expand(catalogue, visited, state) {
            catalogue.fill(miss);
        }
    }
    for one in &mut swept {
        all.transitions += one.transitions;
        all.reached.join(one.reached);
        all.violation = all.violation.take().or(one.violation.take());
    }
    let [first, second] = &mut visited.parts;
    thread::scope(|scope| {
        let swept = &swept;
        let enter = move |part: &mut crate::visited::Part, number: usize| {
            for (state, parent) in swept.iter().flat_map(|one| &one.found[number]) {
                part.enter(*state, *parent);
            }
        };
        scope.spawn(move || enter(second, 1));
        enter(first, 0);
    });
}

impl Swept {
    fn of(catalogue: &Catalogue, visited: &Visited, states: &[StateId]) -> Self {
        let mut swept = Self::default();
        for state in states {
            if swept.expand(catalogue, visited, *state).is_err() {
                swept.missed.push(*state);
            }
        }
        swept
    }

    fn expand(&mut self, catalogue: &Catalogue, visited: &Visited, state: StateId) -> Result<(), Miss> {
        let world = World::unpack(visited.state(state));
        successors(catalogue, &world, &mut self.successors, &mut self.worlds)?;
        for (successor, world) in self.successors.iter().zip(&self.worlds) {
            self.transitions += 1;
            self.reached.join(successor.reached);
            if successor.broken.is_some() && self.violation.is_none() {
                self.violation = Some((state, *successor));
            }
            let packed = world.pack();
            self.found[Visited::part_of(packed)].push((packed, state));
        }
        Ok(())
    }
}

/// The next worlds, each with its representative.
pub(crate) fn successors(
    catalogue: &Catalogue,
    world: &World,
    found: &mut Vec<Successor>,
    worlds: &mut Vec<World>,
) -> Result<(), Miss> {
    found.clear();
    worlds.clear();
    expand(catalogue, world, found)?;
    for successor in found.iter() {
        worlds.push(canonical(catalogue, successor.world)?.0);
    }
    Ok(())
}
