//! Somebody leads soon, once nothing fails any more.

use crate::expand::{Arrived, Happening, Successor};
use crate::hash::FoldState;
use crate::invariant::Invariant;
use crate::label::Label;
use crate::model::Model;
use crate::search::{Limits, Progress, Report};
use crate::trace::Trace;
use crate::visited::{PARTS, StateId, Visited};
use crate::world::{Packed, World};
use std::collections::HashMap;

/// Longest time until somebody leads, in ticks of the store's clock: the longest ttl that a record can have
/// left, a tick by which the standby's clock may be behind, a time-out of the request that was under way when
/// the faults ended, and the pause after it.
pub const LEADS_WITHIN_TICKS: u32 = 7;

/// Most moves of a continuation between two ticks of the store's clock: more mean that it runs in circles.
const MOVES_PER_TICK_MAX: u32 = 64;

/// How soon somebody leads.
#[derive(Clone, PartialEq, Debug)]
pub struct Liveness {
    /// States from which the continuation without faults was followed.
    pub states: u64,
    /// The longest one, in ticks of the store's clock.
    pub slowest_ticks: u32,
    /// A state from which nobody leads in time, and how it comes about.
    pub violation: Option<Trace>,
}

impl Model {
    /// Explores as [`search`](Self::search) does, and then follows, from every state that was found, the one
    /// continuation in which nothing fails: every process runs and wants to lead, every message arrives at
    /// once, no late one does, and everybody wakes in time. Somebody must lead within [`LEADS_WITHIN_TICKS`].
    ///
    /// Meant for small configurations: it takes more than twice the time and memory of the search.
    pub fn search_and_heal(&mut self, limits: Limits, progress: impl FnMut(Progress)) -> (Report, Liveness) {
        let (report, visited) = self.explore(limits, progress);
        let mut known: HashMap<Packed, u32, FoldState> = HashMap::default();
        let mut liveness = Liveness {
            states: 0,
            slowest_ticks: 0,
            violation: None,
        };
        for part in 0..PARTS {
            for place in 0..visited.parts[part].len() {
                let id = StateId::new(part, place);
                match self.ticks_to_a_leader(visited.state(id), &mut known) {
                    Ok(ticks) => liveness.slowest_ticks = liveness.slowest_ticks.max(ticks),
                    Err(first) => {
                        liveness.violation = Some(self.stuck(&visited, id, first));
                        return (report, liveness);
                    }
                }
                liveness.states += 1;
            }
        }
        (report, liveness)
    }

    fn stuck(&mut self, visited: &Visited, id: StateId, first: Successor) -> Trace {
        let first = Successor {
            broken: Some(Invariant::SomebodyLeads),
            ..first
        };
        self.trace(visited, id, &first)
    }

    /// How many ticks of the store's clock pass until somebody leads; `Err` with the first move of a
    /// continuation that does not end in time.
    fn ticks_to_a_leader(
        &mut self,
        from: Packed,
        known: &mut HashMap<Packed, u32, FoldState>,
    ) -> Result<u32, Successor> {
        let mut way: Vec<(Packed, u32)> = Vec::new();
        let (mut state, mut first) = (from, None);
        let (mut found, mut worlds) = (Vec::new(), Vec::new());
        let ticks = loop {
            if let Some(ticks) = known.get(&state) {
                break *ticks;
            }
            let world = World::unpack(state);
            if self.somebody_leads(&world) {
                break 0;
            }
            self.next(&world, &mut found, &mut worlds);
            let place = self.healing(&world, &found);
            let successor = found[place];
            let ticked = u32::from(matches!(successor.happening, Happening::StoreTick));
            way.push((state, ticked));
            let first = *first.get_or_insert(successor);
            let ticks: u32 = way.iter().map(|(_, ticked)| ticked).sum();
            let moves = u32::try_from(way.len()).unwrap_or(u32::MAX);
            if ticks > LEADS_WITHIN_TICKS || moves > MOVES_PER_TICK_MAX * (LEADS_WITHIN_TICKS + 1) {
                return Err(first);
            }
            state = worlds[place].pack();
        };
        let mut from_here = ticks;
        known.insert(state, ticks);
        for (state, ticked) in way.iter().rev() {
            from_here += ticked;
            known.insert(*state, from_here);
        }
        match first {
            Some(first) if from_here > LEADS_WITHIN_TICKS => Err(first),
            _ => Ok(from_here),
        }
    }

    fn somebody_leads(&self, world: &World) -> bool {
        let locals = &world.locals[..self.catalogue.configuration.candidates];
        locals.iter().any(|local| {
            let token = self.catalogue.brief(*local).believes;
            token != 0 && token != world.forced
        })
    }

    /// The move that comes next when nothing fails.
    fn healing(&self, world: &World, found: &[Successor]) -> usize {
        let order = |successor: &Successor| match successor.happening {
            Happening::Own(_, Label::Restart) => Some(0),
            // Work goes on as long as its process believes; what is left of earlier terms ends.
            Happening::Own(place, Label::WorkEnds { .. }) => {
                let local = world.locals[usize::from(place)];
                (self.catalogue.brief(local).believes == 0).then_some(1)
            }
            Happening::Own(_, Label::Campaigns) => Some(2),
            Happening::Arrived {
                when: Arrived::InTime,
                ..
            } => Some(3),
            Happening::Own(_, Label::AnswerArrives { .. }) => Some(4),
            Happening::Own(_, Label::Wakes) => Some(5),
            Happening::Own(_, Label::ClockTicks) => Some(6),
            Happening::StoreTick => Some(7),
            Happening::Own(..)
            | Happening::Arrived { .. }
            | Happening::Told(..)
            | Happening::Gap(_)
            | Happening::Claimed(..)
            | Happening::Wrote(..)
            | Happening::Asked
            | Happening::Forced => None,
        };
        let best = (0..found.len())
            .filter_map(|place| order(&found[place]).map(|order| (order, place)))
            .min();
        best.map_or(0, |(_, place)| place)
    }
}
