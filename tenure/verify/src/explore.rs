//! Runs scenarios under shuttle's schedulers.

use crate::Scenario;
use crate::paced::Paced;
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of stack of each task; a step of the engine in a debug build takes most of it.
const STACK: usize = 0x4_0000;

/// A schedule of so many steps counts as one that never ends; the longest that ended had a tenth of it.
const STEPS_MAX: usize = 1_000_000;

/// How the next to go is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Any that can, each time anew.
    Random,
    /// By priorities that change at so many points, less one: few changes of turn, where most races are found
    /// (probabilistic concurrency testing).
    Pct(usize),
}

/// What exploring a scenario has shown.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of which scenario.
    pub scenario: &'static str,
    /// How it was explored.
    pub choice: Choice,
    /// Schedules that were begun; with a failure, the last of them failed.
    pub schedules: u64,
    /// How long it took.
    pub took: Duration,
    /// What did not hold.
    pub failure: Option<String>,
}

/// Explores `schedules` schedules of a scenario, or up to the first in which something does not hold.
///
/// The schedule of a failure is written into `folder`, for [`replay`].
#[must_use]
pub fn explore(scenario: Scenario, choice: Choice, schedules: usize, seed: u64, folder: &Path) -> Outcome {
    let begun = Instant::now();
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let run = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        (scenario.run)();
    };
    let config = config(Some(folder.to_owned()));
    let failure = catch_unwind(AssertUnwindSafe(|| match choice {
        Choice::Random => Runner::new(
            Paced::new(RandomScheduler::new_from_seed(seed, schedules), seed),
            config,
        )
        .run(run),
        Choice::Pct(depth) => Runner::new(
            Paced::new(PctScheduler::new_from_seed(seed, depth, schedules), seed),
            config,
        )
        .run(run),
    }));
    Outcome {
        scenario: scenario.name,
        choice,
        schedules: count.load(Ordering::SeqCst),
        took: begun.elapsed(),
        failure: failure.err().map(|panic| message(panic.as_ref())),
    }
}

/// Runs one schedule again, as it was written. Panics as it did then, if nothing has been mended.
///
/// # Panics
/// The file cannot be read, or what it describes fails again.
pub fn replay(scenario: Scenario, file: &Path) {
    let scheduler = ReplayScheduler::new_from_file(file).expect("a schedule can be read");
    Runner::new(scheduler, config(None)).run(scenario.run);
}

fn config(folder: Option<PathBuf>) -> Config {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = match folder {
        Some(folder) => FailurePersistence::File(Some(folder)),
        None => FailurePersistence::None,
    };
    config
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked");
    text.to_owned()
}
