//! `tenure-sim model`: every reachable state.

use super::figure::{Figure, Verdict, grouped};
use super::{CLEAN, FAILED, VIOLATION, progress_bar};
use tenure_model::{Configuration, Limits, Milestone, Model, Report};

#[derive(clap::Args)]
#[group(multiple = false)]
pub(super) struct Which {
    /// The smallest model, in which most planted bugs are found: seconds
    #[arg(long)]
    quick: bool,
    /// Two candidates and everything that can happen, whole (the default)
    #[arg(long)]
    two: bool,
    /// Three candidates: 10^8 states and more, gigabytes of memory, an hour
    #[arg(long)]
    three: bool,
}

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Stop after so many distinct states
    #[arg(long, value_name = "NUMBER")]
    states: Option<u64>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let configuration = if arguments.which.quick {
        Configuration::quick()
    } else if arguments.which.three {
        Configuration::three_candidates()
    } else {
        Configuration::two_candidates()
    };
    println!("{configuration}");
    let report = search(configuration, arguments.states);
    println!("{}", in_words(&report));
    let missing = missing(&report);
    for milestone in &missing {
        println!("never reached: {milestone:?}");
    }
    match &report.violation {
        Some(trace) => {
            println!("{trace}");
            println!(
                "violation: {}: after {} moves, above",
                trace.broken,
                trace.lines.len()
            );
            VIOLATION
        }
        None if report.exhausted && !arguments.which.quick && !missing.is_empty() => {
            eprintln!("the model did not get to everything that it is there to look at");
            FAILED
        }
        None => CLEAN,
    }
}

/// The figures of the scoreboard: two candidates whole, and, in the long form, three.
pub(super) fn figures(three: Option<u64>) -> Vec<Figure> {
    let two = search(Configuration::two_candidates(), None);
    let mut figures = vec![figure("distinct states, two candidates", 1_000_000, &two)];
    if let Some(states) = three {
        let three = search(Configuration::three_candidates(), Some(states));
        figures.push(figure("distinct states, three candidates", 100_000_000, &three));
    }
    figures
}

fn figure(what: &str, target: u64, report: &Report) -> Figure {
    let kept = report.violation.is_none() && report.exhausted && report.distinct >= target;
    Figure {
        what: what.to_owned(),
        target: format!("{}, exhausted, 0 violations", grouped(target)),
        measured: in_words(report),
        seconds: report.seconds,
        verdict: Verdict::of(kept),
    }
}

fn missing(report: &Report) -> Vec<Milestone> {
    report.reached.missing(&Milestone::ALL)
}

fn search(configuration: Configuration, states: Option<u64>) -> Report {
    let limits = Limits::default();
    let limits = Limits {
        distinct_max: states.unwrap_or(limits.distinct_max),
        ..limits
    };
    let bar = progress_bar(0, "model");
    let report = Model::new(configuration).search(limits, |progress| {
        // What is known so far: it ends when nothing waits any more.
        bar.set_length(progress.distinct);
        bar.set_position(progress.distinct - progress.waiting);
        bar.set_message(format!("states, {} moves deep", progress.depth));
    });
    bar.finish_and_clear();
    report
}

fn in_words(report: &Report) -> String {
    format!(
        "{} distinct states, {} moves, depth {}, {}; {} violations; made of {} different steps of the real engine",
        grouped(report.distinct),
        grouped(report.transitions),
        report.depth,
        if report.exhausted {
            "exhausted"
        } else {
            "not exhausted"
        },
        u8::from(report.violation.is_some()),
        grouped(report.steps),
    )
}
