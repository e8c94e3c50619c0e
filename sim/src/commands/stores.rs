//! `tenure-sim stores`: the proof of the real stores' tests.

use super::mutants::ended;
use super::progress_bar;
use std::time::{Duration, Instant};
use tenure_mutants::{
    Error, STORES_TABLE, StoreOptions, StoreOutcome, StoreProgress, StoreVerdict, run_stores,
    write_stores_table,
};

/// How many tests are named for one bug.
const TESTS_SHOWN: usize = 3;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only bugs of this store: sqlite, mongodb, postgres, mysql, redis, etcd or nats
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Only bugs whose name contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    row: Vec<String>,
    /// Longest time for the tests of one bug
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    seconds: u64,
    /// Write what became of them to the table, sim/mutants/STORES.md; others stay there as they are
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

fn is_caught(verdict: &StoreVerdict) -> bool {
    matches!(verdict.outcome, StoreOutcome::Caught { .. })
}

fn try_all(arguments: &Arguments) -> Result<Vec<StoreVerdict>, Vec<Error>> {
    let options = StoreOptions {
        store: arguments.store.clone(),
        only: arguments.row.clone(),
        limit: Duration::from_secs(arguments.seconds),
        ..StoreOptions::default()
    };
    let bar = progress_bar(0, "stores");
    let verdicts = run_stores(&options, &mut |progress| match progress {
        StoreProgress::Building => bar.set_message("building a copy without a bug"),
        StoreProgress::TestingWithoutBugs { store, tests } => {
            bar.set_message(format!("{store}: {tests} tests without a bug"));
        }
        StoreProgress::Trying {
            row,
            done: [done, all],
        } => {
            bar.set_length(u64::try_from(all).unwrap_or(u64::MAX));
            bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
            bar.set_message(format!("{}: {}", row.store, row.name));
        }
        StoreProgress::Done(verdict) => bar.suspend(|| println!("{}", line(verdict))),
    })?;
    bar.finish_and_clear();
    if arguments.write {
        write_stores_table(&options.workspace, options.rows, &verdicts).map_err(|error| vec![error])?;
        println!("written: {STORES_TABLE}");
    }
    Ok(verdicts)
}

fn line(verdict: &StoreVerdict) -> String {
    let name = format!("{}: {}", verdict.row.store, verdict.row.name);
    match &verdict.outcome {
        StoreOutcome::Caught { by, seconds } => format!(
            "caught    {name}: in {:.1} s by {} tests: {}",
            seconds.as_secs_f64(),
            by.len(),
            by.iter()
                .take(TESTS_SHOWN)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        ),
        StoreOutcome::Survived => format!("SURVIVED  {name}"),
        StoreOutcome::DoesNotCompile { words } => format!("ERROR     {name}: it does not compile:\n{words}"),
        StoreOutcome::TimeUp => format!("ERROR     {name}: the tests took too long"),
        StoreOutcome::Failed { why } => format!("ERROR     {name}: {why}"),
    }
}
