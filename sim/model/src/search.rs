use crate::canonical::canonical;
use crate::catalogue::Catalogue;
use crate::configuration::{CANDIDATES_MAX, Configuration};
use crate::expand::{Successor, expand};
use crate::invariant::Invariant;
use crate::local::Local;
use crate::milestone::Milestones;
use crate::record::{Flaw, Rules};
use crate::trace::Trace;
use crate::visited::{Entered, Visited};
use crate::world::{Holder, World};
use std::time::Instant;

/// Everything that can happen within the bounds of a configuration.
pub struct Model {
    pub(crate) catalogue: Catalogue,
}

/// When to stop before everything was explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// After so many distinct states. Default: 2^32 − 2, the most that can be numbered.
    pub distinct_max: u64,
    /// After so many moves from the beginning. Default: no limit.
    pub depth_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            distinct_max: u64::from(u32::MAX - 1),
            depth_max: u32::MAX,
        }
    }
}

/// How far a search has come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Distinct states.
    pub distinct: u64,
    /// Moves between them.
    pub transitions: u64,
    /// Moves from the beginning to the states that are being expanded.
    pub depth: u32,
    /// States that wait to be expanded.
    pub waiting: u64,
    /// Since the search began.
    pub seconds: f64,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Distinct states, candidates that are exchanged counted once.
    pub distinct: u64,
    /// Moves between them.
    pub transitions: u64,
    /// Moves from the beginning to the farthest state.
    pub depth: u32,
    /// Whether every state within the configuration's bounds was expanded.
    pub exhausted: bool,
    /// How long it took.
    pub seconds: f64,
    /// Distinct situations of one candidate.
    pub situations: u64,
    /// How many different steps of an engine these moves are made of.
    pub steps: u64,
    /// The shortest way to a state that must not be.
    pub violation: Option<Trace>,
    /// What was seen to happen.
    pub reached: Milestones,
}

/// How often progress is reported: after so many expanded states.
const REPORT_EVERY: usize = 1 << 16;

impl Model {
    /// A model of candidates over a store that keeps the contract.
    #[must_use]
    pub fn new(configuration: Configuration) -> Self {
        Self::over(configuration, Rules::default())
    }

    /// The same over a store with a planted mistake, to prove that the model notices it.
    #[must_use]
    pub fn with_flaw(configuration: Configuration, flaw: Flaw) -> Self {
        Self::over(configuration, Rules { flaw: Some(flaw) })
    }

    fn over(configuration: Configuration, rules: Rules) -> Self {
        assert!(
            (1..=CANDIDATES_MAX).contains(&configuration.candidates),
            "{} candidates are outside 1 to {CANDIDATES_MAX}",
            configuration.candidates
        );
        Self {
            catalogue: Catalogue::new(configuration, rules),
        }
    }

    /// All candidates just started, none wants anything yet, no record.
    pub(crate) fn beginning(&mut self) -> World {
        let idle = self.catalogue.number(Local::started(Vec::new()));
        World {
            locals: std::array::from_fn(|place| {
                if place < self.catalogue.configuration.candidates {
                    idle
                } else {
                    0
                }
            }),
            record: None,
            holder: Holder::Gone,
            mark: 0,
            forced: 0,
        }
    }

    /// The next worlds, each with its representative. Works out what is not known yet.
    pub(crate) fn next(&mut self, world: &World, found: &mut Vec<Successor>, canonicals: &mut Vec<World>) {
        loop {
            found.clear();
            canonicals.clear();
            let result = expand(&self.catalogue, world, found).and_then(|()| {
                for successor in found.iter() {
                    canonicals.push(canonical(&self.catalogue, successor.world)?.0);
                }
                Ok(())
            });
            match result {
                Ok(()) => return,
                Err(miss) => self.catalogue.fill(miss),
            }
        }
    }

    /// Explores breadth first, so that a violation is reported by a shortest way to it.
    pub fn search(&mut self, limits: Limits, mut progress: impl FnMut(Progress)) -> Report {
        let begun = Instant::now();
        let mut visited = Visited::new();
        let beginning = self.beginning();
        visited.enter(beginning.pack(), None);
        let (mut transitions, mut depth, mut reached) = (0_u64, 0_u32, Milestones::default());
        let (mut found, mut canonicals) = (Vec::new(), Vec::new());
        let mut violation: Option<(usize, Successor)> = None;
        let mut expanded = 0;
        let mut exhausted = true;
        let mut level_end = visited.len();
        while expanded < visited.len() {
            if expanded == level_end {
                depth += 1;
                level_end = visited.len();
            }
            if depth >= limits.depth_max || visited.count() >= limits.distinct_max {
                exhausted = false;
                break;
            }
            let world = World::unpack(visited.state(expanded));
            self.next(&world, &mut found, &mut canonicals);
            for (successor, world) in found.iter().zip(&canonicals) {
                transitions += 1;
                reached.join(successor.reached);
                if successor.broken.is_some() {
                    violation = Some((expanded, *successor));
                    break;
                }
                if visited.enter(world.pack(), Some(expanded)) == Entered::Full {
                    exhausted = false;
                }
            }
            expanded += 1;
            if violation.is_some() {
                exhausted = false;
                break;
            }
            if expanded % REPORT_EVERY == 0 {
                progress(Progress {
                    distinct: visited.count(),
                    transitions,
                    depth,
                    waiting: u64::try_from(visited.len() - expanded).unwrap_or(u64::MAX),
                    seconds: begun.elapsed().as_secs_f64(),
                });
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let violation = violation.map(|(last, successor)| self.trace(&visited, last, &successor));
        Report {
            distinct: visited.count(),
            transitions,
            depth,
            exhausted,
            seconds,
            situations: u64::try_from(self.catalogue.locals()).unwrap_or(u64::MAX),
            steps: self.catalogue.steps,
            violation,
            reached,
        }
    }
}

impl Report {
    /// What was broken, if anything was.
    #[must_use]
    pub fn broken(&self) -> Option<Invariant> {
        self.violation.as_ref().map(|trace| trace.broken)
    }
}
