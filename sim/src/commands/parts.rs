//! `tenure-sim parts`: the proof of the tests of the stores, the fences and the library.

use super::mutants::ended;
use super::progress_bar;
use std::time::{Duration, Instant};
use tenure_mutants::{
    Error, PARTS_TABLE, PartOptions, PartOutcome, PartProgress, PartVerdict, run_parts, write_parts_table,
};

/// How many tests are named for one bug.
const TESTS_SHOWN: usize = 3;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only bugs of this part: sqlite, mongodb, postgres, mysql, redis, etcd, nats, watermark, http,
    /// core or driver
    #[arg(long, value_name = "PART")]
    part: Option<String>,
    /// Only bugs whose name contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    row: Vec<String>,
    /// Longest time for the tests of one bug
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    seconds: u64,
    /// Write what became of them to the table, sim/mutants/PARTS.md; others stay there as they are
    #[arg(long)]
    write: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let began = Instant::now();
    ended(try_all(arguments).map(|verdicts| {
        let caught = verdicts.iter().filter(|verdict| is_caught(verdict)).count();
        let seconds = began.elapsed().as_secs();
        println!("{caught} of {} caught in {seconds} s", verdicts.len());
        caught == verdicts.len()
    }))
}

fn is_caught(verdict: &PartVerdict) -> bool {
    matches!(verdict.outcome, PartOutcome::Caught { .. })
}

fn try_all(arguments: &Arguments) -> Result<Vec<PartVerdict>, Vec<Error>> {
    let options = PartOptions {
        part: arguments.part.clone(),
        only: arguments.row.clone(),
        limit: Duration::from_secs(arguments.seconds),
        ..PartOptions::default()
    };
    let bar = progress_bar(0, "parts");
    let verdicts = run_parts(&options, &mut |progress| match progress {
        PartProgress::Building => bar.set_message("building a copy without a bug"),
        PartProgress::TestingWithoutBugs { part, tests } => {
            bar.set_message(format!("{}: {tests} tests without a bug", part.name));
        }
        PartProgress::Trying {
            row,
            done: [done, all],
        } => {
            bar.set_length(u64::try_from(all).unwrap_or(u64::MAX));
            bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
            bar.set_message(format!("{}: {}", row.part.name, row.name));
        }
        PartProgress::Done(verdict) => bar.suspend(|| println!("{}", line(verdict))),
    })?;
    bar.finish_and_clear();
    if arguments.write {
        write_parts_table(&options.workspace, options.rows, &verdicts).map_err(|error| vec![error])?;
        println!("written: {PARTS_TABLE}");
    }
    Ok(verdicts)
}

fn line(verdict: &PartVerdict) -> String {
    let name = format!("{}: {}", verdict.row.part.name, verdict.row.name);
    match &verdict.outcome {
        PartOutcome::Caught { by, seconds } => format!(
            "caught    {name}: in {:.1} s by {} tests: {}",
            seconds.as_secs_f64(),
            by.len(),
            by.iter()
                .take(TESTS_SHOWN)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        ),
        PartOutcome::Survived => format!("SURVIVED  {name}"),
        PartOutcome::DoesNotCompile { words } => format!("ERROR     {name}: it does not compile:\n{words}"),
        PartOutcome::TimeUp => format!("ERROR     {name}: the tests took too long"),
        PartOutcome::Failed { why } => format!("ERROR     {name}: {why}"),
    }
}
