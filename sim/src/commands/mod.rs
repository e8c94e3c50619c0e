//! What the one door leads to.

mod figure;
mod machine;
mod model;
mod mutants;
mod part;
mod parts;
mod replay;
mod report;
mod simulate;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Everything held, though a figure may have missed its target.
const CLEAN: u8 = 0;
/// Something could not be done.
const FAILED: u8 = 1;
/// A promise was broken.
const VIOLATION: u8 = 3;

/// Proves Tenure: the real engine through every fault, in virtual time and exhaustively.
///
/// Exit codes: 0 nothing was found; 3 a promise was broken, and the last lines say which and how to see it
/// again; 1 something else went wrong; 2 the command line.
#[derive(Parser)]
#[command(name = "tenure-sim", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    door: Door,
}

#[derive(Subcommand)]
enum Door {
    /// Simulate leader-terms under faults, and check every promise at every step
    Sim(simulate::Arguments),
    /// Explore every state that candidates, messages and clocks can get into
    Model(model::Arguments),
    /// Plant known bugs in a copy, one at a time, and demand that each is caught
    Mutants(mutants::Arguments),
    /// Plant bugs in the stores, the fences and the library, one at a time, and demand that their tests
    /// notice
    Parts(parts::Arguments),
    /// Run a seed again, or the trace of a real process
    Replay(replay::Arguments),
    /// Run every proof and print the scoreboard
    Report(report::Arguments),
}

/// Reads the command line and does what it says.
pub(crate) fn run() -> ExitCode {
    let code = match Cli::parse().door {
        Door::Sim(arguments) => simulate::run(&arguments),
        Door::Model(arguments) => model::run(&arguments),
        Door::Mutants(arguments) => mutants::run(&arguments),
        Door::Parts(arguments) => parts::run(&arguments),
        Door::Replay(arguments) => replay::run(&arguments),
        Door::Report(arguments) => report::run(&arguments),
    };
    ExitCode::from(code)
}

/// A bar on standard error for work whose length is known; nothing where that is no terminal.
fn progress_bar(length: u64, what: &'static str) -> indicatif::ProgressBar {
    let style = indicatif::ProgressStyle::with_template(
        "{prefix:>10} [{bar:32}] {human_pos}/{human_len} {msg} {elapsed} (left: {eta})",
    )
    .expect("the template is well-formed");
    indicatif::ProgressBar::new(length)
        .with_style(style.progress_chars("=> "))
        .with_prefix(what)
}
