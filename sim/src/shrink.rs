//! From a violation to the few faults that it needs.

use crate::narrate::Narrator;
use crate::outcome::{Outcome, Violation};
use crate::plan::{Edit, Plan};
use crate::replay::replay;
use std::time::Duration;

/// Most runs of one shrinking: each takes some milliseconds.
const RUNS_MAX: u32 = 4_000;

/// A violation with everything left out that it does not need.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The violation, as it is in the shrunk run.
    pub violation: Violation,
    /// What of the seed is kept.
    pub edit: Edit,
    /// How many faults the seed has.
    pub faults_before: usize,
    /// How many runs it took.
    pub runs: u32,
    /// What happens in the shrunk run, one line each; at most the last [`LINES_MAX`](Self::LINES_MAX).
    pub trace: Vec<String>,
}

impl Shrunk {
    /// Most lines of the trace.
    pub const LINES_MAX: usize = 200;

    /// The one command that replays it.
    #[must_use]
    pub fn command(&self) -> String {
        command(self.violation.seed, &self.edit)
    }
}

/// The one command that replays a seed as edited.
#[must_use]
pub fn command(seed: u64, edit: &Edit) -> String {
    let mut command = format!("cargo run -p tenure-sim --release -- replay --seed {seed}");
    if let Some(candidates) = edit.candidates {
        command += &format!(" --candidates {candidates}");
    }
    if let Some(keep) = &edit.keep {
        let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
        command += &format!(
            " --keep {}",
            if keep.is_empty() {
                "none".to_owned()
            } else {
                keep.join(",")
            }
        );
    }
    if let Some(until) = edit.until {
        command += &format!(" --until {:?}", Duration::from_nanos(until));
    }
    command
}

struct Shrinker {
    seed: u64,
    law: &'static str,
    runs: u32,
}

impl Shrinker {
    /// The violation of the same law that an edit still has.
    fn violation(&mut self, edit: &Edit) -> Option<Outcome> {
        if self.runs >= RUNS_MAX {
            return None;
        }
        self.runs += 1;
        let outcome = replay(self.seed, edit, None);
        let same = outcome
            .violation
            .as_ref()
            .is_some_and(|violation| violation.breach.law.name == self.law);
        same.then_some(outcome)
    }

    /// Leaves out faults in ever smaller groups, as long as the violation stays (Zeller and Hildebrandt:
    /// "Simplifying and Isolating Failure-Inducing Input", 2002).
    fn leave_out_faults(&mut self, edit: &mut Edit) {
        let mut kept = edit.keep.clone().unwrap_or_default();
        let mut group = kept.len().div_ceil(2).max(1);
        loop {
            let mut start = 0;
            let mut left_out = false;
            while start < kept.len() {
                let end = (start + group).min(kept.len());
                let rest: Vec<u32> = kept[..start].iter().chain(&kept[end..]).copied().collect();
                let trial = Edit {
                    keep: Some(rest.clone()),
                    ..edit.clone()
                };
                if self.violation(&trial).is_some() {
                    kept = rest;
                    left_out = true;
                } else {
                    start = end;
                }
            }
            if group == 1 && !left_out {
                break;
            }
            group = group.div_ceil(2).max(1);
            if self.runs >= RUNS_MAX {
                break;
            }
        }
        edit.keep = Some(kept);
    }
}

/// Shrinks the violation of a seed; `None` if it has none.
///
/// `edit` is what the seed is run with to begin with.
#[must_use]
pub fn shrink(seed: u64, edit: &Edit) -> Option<Shrunk> {
    let first = replay(seed, edit, None);
    let found = first.violation?;
    let plan = Plan::of_seed(seed, edit);
    let mut shrinker = Shrinker {
        seed,
        law: found.breach.law.name,
        runs: 1,
    };
    let mut kept = Edit {
        until: Some(found.at.max(1)),
        ..edit.clone()
    };
    if shrinker.violation(&kept).is_none() {
        // The breach was judged at an earlier moment than the step that showed it.
        kept.until = edit.until;
    }
    let until = kept.until.unwrap_or(u64::MAX);
    let all = plan
        .calendar
        .iter()
        .zip(0_u32..)
        .filter(|(planned, _)| planned.at <= until);
    kept.keep
        .get_or_insert_with(|| all.map(|(_, ordinal)| ordinal).collect());
    shrinker.leave_out_faults(&mut kept);
    for candidates in 2..plan.candidates {
        let trial = Edit {
            candidates: Some(candidates),
            ..kept.clone()
        };
        if shrinker.violation(&trial).is_some() {
            kept = trial;
            shrinker.leave_out_faults(&mut kept);
            break;
        }
    }
    end_sooner(&mut shrinker, &mut kept);
    let mut trace = Vec::new();
    let outcome = replay(
        seed,
        &kept,
        Some(Narrator::new(&mut |line| trace.push(line.to_owned()))),
    );
    let surplus = trace.len().saturating_sub(Shrunk::LINES_MAX);
    trace.drain(..surplus);
    Some(Shrunk {
        violation: outcome.violation?,
        edit: kept,
        faults_before: plan.calendar.len(),
        runs: shrinker.runs,
        trace,
    })
}

/// Ends the run with the violation.
fn end_sooner(shrinker: &mut Shrinker, kept: &mut Edit) {
    let Some(outcome) = shrinker.violation(kept) else {
        return;
    };
    let at = outcome.simulated;
    for until in [outcome.violation.map_or(at, |violation| violation.at), at] {
        let trial = Edit {
            until: Some(until),
            ..kept.clone()
        };
        if shrinker.violation(&trial).is_some() {
            *kept = trial;
            return;
        }
    }
}
