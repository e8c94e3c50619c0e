//! `tenure-sim mutants`: the proof of the proofs.

use super::figure::{Figure, Verdict};
use super::{CLEAN, FAILED, VIOLATION, progress_bar};
use std::time::{Duration, Instant};
use tenure_mutants::{Error, Options, Outcome, Progress, TABLE, places, write_table};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only planted bugs whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Longest search for one bug by one checker
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Write the table of the planted bugs, sim/mutants/TABLE.md
    #[arg(long, conflicts_with = "only")]
    write: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let tried = try_all(arguments.only.clone(), arguments.seconds, arguments.write);
    ended(tried.map(|tally| {
        println!("{}", tally.in_words());
        tally.caught == tally.planted
    }))
}

/// The exit code where bugs were planted: whether all were caught, or why none could be tried.
pub(super) fn ended(tried: Result<bool, Vec<Error>>) -> u8 {
    match tried {
        Ok(true) => CLEAN,
        Ok(false) => VIOLATION,
        Err(errors) => {
            for error in errors {
                eprintln!("{error}");
            }
            FAILED
        }
    }
}

/// The figure of the scoreboard.
pub(super) fn figures(write: bool) -> Vec<Figure> {
    let began = Instant::now();
    let (measured, kept) = match try_all(None, 60, write) {
        Ok(tally) => (
            tally.in_words(),
            tally.caught == tally.planted && tally.planted >= 40,
        ),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(Error::to_string).collect();
            (errors.join("; "), false)
        }
    };
    vec![Figure {
        what: "planted bugs caught".to_owned(),
        target: "all of at least 40, each within 60 s".to_owned(),
        measured,
        seconds: began.elapsed().as_secs_f64(),
        verdict: Verdict::of(kept),
    }]
}

struct Tally {
    planted: usize,
    caught: usize,
    places: String,
    slowest: Duration,
    slowest_name: &'static str,
}

impl Tally {
    fn in_words(&self) -> String {
        format!(
            "{} of {} caught, {}; the slowest, \"{}\", after {:.1} s",
            self.caught,
            self.planted,
            self.places,
            self.slowest_name,
            self.slowest.as_secs_f64()
        )
    }
}

fn try_all(only: Option<String>, seconds: u64, write: bool) -> Result<Tally, Vec<Error>> {
    let options = Options {
        only,
        limit: Duration::from_secs(seconds),
        ..Options::default()
    };
    let bar = progress_bar(0, "mutants");
    let verdicts = tenure_mutants::run(&options, &mut |progress| match progress {
        Progress::Building { planted } => bar.set_message(format!("building a copy with {planted} bugs")),
        Progress::CheckingWithoutBugs(by) => bar.set_message(format!("{by}: without a bug")),
        Progress::Trying {
            row,
            by,
            done: [done, all],
        } => {
            bar.set_length(u64::try_from(all).unwrap_or(u64::MAX));
            bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
            bar.set_message(format!("{by}: {}", row.name));
        }
        Progress::Done(verdict) => bar.suspend(|| println!("{}", line(verdict))),
    })?;
    bar.finish_and_clear();
    if write {
        write_table(&options.workspace, &verdicts).map_err(|error| vec![error])?;
        println!("written: {TABLE}");
    }
    let caught = |verdict: &&tenure_mutants::Verdict| match &verdict.outcome {
        Outcome::Caught { seconds, .. } => Some((*seconds, verdict.row.name)),
        Outcome::Survived | Outcome::Failed { .. } => None,
    };
    let times: Vec<(Duration, &'static str)> =
        verdicts.iter().filter_map(|verdict| caught(&verdict)).collect();
    let (slowest, slowest_name) = times.iter().max().copied().unwrap_or_default();
    Ok(Tally {
        planted: verdicts.len(),
        caught: times.len(),
        places: places(verdicts.iter().map(|verdict| verdict.row)),
        slowest,
        slowest_name,
    })
}

fn line(verdict: &tenure_mutants::Verdict) -> String {
    let name = verdict.row.name;
    match &verdict.outcome {
        Outcome::Caught {
            by,
            seconds,
            invariant,
            ..
        } => format!(
            "caught    {name}: by the {by} in {:.1} s as \"{invariant}\"",
            seconds.as_secs_f64()
        ),
        Outcome::Survived => format!("SURVIVED  {name}"),
        Outcome::Failed { by, why } => format!("ERROR     {name}: the {by} ended with {why}"),
    }
}
