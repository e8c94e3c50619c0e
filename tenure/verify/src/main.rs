//! `cargo run --release -p tenure-shell`: tries the races of the shell in many orders.

#![forbid(unsafe_code)]
#![allow(
    dead_code,
    reason = "the callers of the deadline cell are in the crate whose file it is"
)]

mod cell;

/// What the deadline cell stands on here: loom's atomics, which try every order.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;
use tenure_shell::{ALL, Choice, Outcome, Scenario, explore, replay};

const USAGE: &str = "\
Tries the races of the shell in many orders.

Usage: tenure-shell [--iterations N] [--scenario NAME]... [--seed N]
       tenure-shell --replay NAME FILE

  --iterations N   schedules of each scenario, half of them random, half by priorities (default: 2000)
  --scenario NAME  only this one; may be repeated
  --seed N         what the schedules are drawn from (default: 1)
  --replay NAME FILE
                   runs one schedule again that a failure has written";

/// Points of change of a schedule by priorities, and one.
const DEPTH: usize = 4;

struct Plan {
    iterations: usize,
    seed: u64,
    scenarios: Vec<Scenario>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, file] = arguments.as_slice()
        && flag == "--replay"
        && let Some(scenario) = find(name)
    {
        replay(scenario, Path::new(file));
        println!("{name}: nothing fails in this schedule any more");
        return ExitCode::SUCCESS;
    }
    let Some(plan) = parse(&arguments) else {
        eprintln!("{USAGE}\n\nScenarios:");
        ALL.iter().for_each(|scenario| eprintln!("  {}", scenario.name));
        return ExitCode::from(2);
    };
    run(&plan)
}

fn find(name: &str) -> Option<Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

fn parse(arguments: &[String]) -> Option<Plan> {
    let mut plan = Plan {
        iterations: 2000,
        seed: 1,
        scenarios: Vec::new(),
    };
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { return None };
        match flag.as_str() {
            "--iterations" => plan.iterations = value.parse().ok().filter(|count| *count >= 2)?,
            "--seed" => plan.seed = value.parse().ok()?,
            "--scenario" => plan.scenarios.push(find(value)?),
            _ => return None,
        }
    }
    if plan.scenarios.is_empty() {
        plan.scenarios = ALL.to_vec();
    }
    Some(plan)
}

fn run(plan: &Plan) -> ExitCode {
    let begun = Instant::now();
    let folder = PathBuf::from("target/shell");
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("no folder for failing schedules at {}: {error}", folder.display());
        return ExitCode::from(2);
    }
    let choices = [Choice::Random, Choice::Pct(DEPTH)];
    let jobs: VecDeque<(Scenario, Choice)> = plan
        .scenarios
        .iter()
        .flat_map(|scenario| choices.map(|choice| (*scenario, choice)))
        .collect();
    let jobs = Mutex::new(jobs);
    let outcomes = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().expect("no worker panics").pop_front();
                    let Some((scenario, choice)) = job else { return };
                    let outcome = explore(scenario, choice, plan.iterations / 2, plan.seed, &folder);
                    report(&outcome);
                    outcomes.lock().expect("no worker panics").push(outcome);
                }
            });
        }
    });
    let orders = exhaust_the_cell();
    let outcomes = outcomes.into_inner().expect("no worker panics");
    let schedules: u64 = outcomes.iter().map(|outcome| outcome.schedules).sum();
    let failures = outcomes
        .iter()
        .filter(|outcome| outcome.failure.is_some())
        .count()
        + usize::from(orders.is_none());
    let (scenarios, took) = (plan.scenarios.len(), begun.elapsed().as_secs_f64());
    if let Some(orders) = orders {
        println!(
            "deadline cell: {orders} orders in {} models, every one there is",
            cell::MODELS.len()
        );
    }
    println!("shell: {schedules} schedules over {scenarios} scenarios, {failures} failures, {took:.1} s");
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// How many executions loom has tried; `None` if something did not hold in one of them.
fn exhaust_the_cell() -> Option<u64> {
    let mut all = Some(0);
    for (name, model) in cell::MODELS {
        let begun = Instant::now();
        if let Ok(executions) = std::panic::catch_unwind(|| cell::exhaust(*model)) {
            println!(
                "{name:<40} loom {executions:>8} orders, all {:>6.1} s",
                begun.elapsed().as_secs_f64()
            );
            all = all.map(|sum| sum + executions);
        } else {
            println!("{name:<40} loom FAILED");
            all = None;
        }
    }
    all
}

fn report(outcome: &Outcome) {
    let Outcome {
        scenario,
        choice,
        schedules,
        took,
        failure,
    } = outcome;
    let choice = match choice {
        Choice::Random => "random".to_owned(),
        Choice::Pct(depth) => format!("pct {depth}"),
    };
    match failure {
        None => println!(
            "{scenario:<34} {choice:<7} {schedules:>8} schedules {:>6.1} s",
            took.as_secs_f64()
        ),
        Some(failure) => println!("{scenario:<34} {choice:<7} FAILED in schedule {schedules}: {failure}"),
    }
}
