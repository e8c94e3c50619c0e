use crate::configuration::Configuration;
use crate::invariant::Invariant;
use crate::milestone::Milestones;
use crate::model::Model;
use crate::sweep::{Swept, sweep};
use crate::trace::Trace;
use crate::visited::{PARTS, StateId, Visited};
use std::fmt;
use std::time::Instant;

/// When to stop before everything was explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// After so many distinct states, or a little more. Default: 2^32 − 2, the most that can be numbered.
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
    /// How many different moves of one candidate these moves are made of: so often the engine was stepped.
    pub steps: u64,
    /// The shortest way to a state that must not be.
    pub violation: Option<Trace>,
    /// What was seen to happen.
    pub reached: Milestones,
}

/// How many states are expanded between two reports of progress, and before the new ones are entered.
const BATCH: usize = 1 << 16;

impl Model {
    /// Explores breadth first, so that a violation is told by a shortest way to it. Uses two threads; what is
    /// reported, times apart, is the same in every run.
    pub fn search(&mut self, limits: Limits, progress: impl FnMut(Progress)) -> Report {
        self.explore(limits, progress).0
    }

    /// The search, and the states that it found.
    pub(crate) fn explore(
        &mut self,
        limits: Limits,
        mut progress: impl FnMut(Progress),
    ) -> (Report, Visited) {
        let begun = Instant::now();
        let mut visited = Visited::new();
        visited.begin(self.beginning().pack());
        let mut all = Swept::default();
        let (mut depth, mut expanded, mut cut) = (0_u32, 0_u64, false);
        let mut begin = [0; PARTS];
        'levels: loop {
            let end = [0, 1].map(|part| visited.parts[part].len());
            if begin == end {
                break;
            }
            if depth >= limits.depth_max {
                cut = true;
                break;
            }
            for part in 0..PARTS {
                for first in (begin[part]..end[part]).step_by(BATCH) {
                    if visited.count() >= limits.distinct_max {
                        cut = true;
                        break 'levels;
                    }
                    let last = end[part].min(first + BATCH);
                    let states: Vec<StateId> = (first..last).map(|place| StateId::new(part, place)).collect();
                    sweep(&mut self.catalogue, &mut visited, &states, &mut all);
                    if all.violation.is_some() {
                        break 'levels;
                    }
                    expanded += u64::try_from(states.len()).unwrap_or(0);
                    progress(Progress {
                        distinct: visited.count(),
                        transitions: all.transitions,
                        depth,
                        waiting: visited.count() - expanded,
                        seconds: begun.elapsed().as_secs_f64(),
                    });
                }
            }
            begin = end;
            depth += 1;
        }
        let exhausted = !cut && all.violation.is_none() && !visited.is_full();
        let seconds = begun.elapsed().as_secs_f64();
        let violation = all
            .violation
            .map(|(last, successor)| self.trace(&visited, last, &successor));
        let report = Report {
            distinct: visited.count(),
            transitions: all.transitions,
            // The last level is the one that led to no new one.
            depth: if exhausted { depth.saturating_sub(1) } else { depth },
            exhausted,
            seconds,
            situations: u64::try_from(self.catalogue.locals()).unwrap_or(u64::MAX),
            steps: self.catalogue.steps,
            violation,
            reached: all.reached,
        };
        (report, visited)
    }
}

impl Report {
    /// What was broken, if anything was.
    #[must_use]
    pub fn broken(&self) -> Option<Invariant> {
        self.violation.as_ref().map(|trace| trace.broken)
    }

    /// What the configuration should have reached and did not.
    #[must_use]
    pub fn missing(&self, configuration: &Configuration) -> Vec<crate::Milestone> {
        self.reached.missing(&configuration.milestones())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match (&self.violation, self.exhausted) {
            (Some(_), _) => "violated",
            (None, true) => "exhausted without a violation",
            (None, false) => "cut off without a violation",
        };
        write!(
            f,
            "{} distinct states, {} moves between them, {} deep, {end}; {} situations of a candidate; {:.1} s",
            self.distinct, self.transitions, self.depth, self.situations, self.seconds
        )
    }
}
