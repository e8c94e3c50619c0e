//! The command: which targets, how hard, and what is printed.

use crate::{Corpus, Effort, Outcome, Target, execute, run as search};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Exit code when a promise was broken.
pub const FOUND: u8 = 3;

/// Exit code for wrong arguments.
const USAGE: u8 = 2;

/// Exit code when a file cannot be read or written.
const FAILED: u8 = 1;

/// Replays every corpus, then executes seeded mutations of it.
///
/// Exit codes: 0 nothing was found, 1 a file cannot be read or written, 2 wrong arguments, 3 an input broke
/// a promise: its path and the command that replays it are printed.
#[derive(Parser, Debug)]
#[command(name = "tenure-fuzz", version)]
struct Arguments {
    /// Mutated inputs to execute, shared equally by the targets.
    #[arg(long, default_value_t = 1_000_000)]
    executions: u64,
    /// What the mutations are a function of.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this target; may be given several times. Default: all.
    #[arg(long = "target", value_name = "NAME")]
    names: Vec<String>,
    /// Executes this one file by the one target, and nothing else.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// The folder of the corpora, one folder a target.
    #[arg(long, value_name = "FOLDER", default_value = corpora())]
    corpus: PathBuf,
    /// Where inputs that broke a promise are saved.
    #[arg(long, value_name = "FOLDER", default_value = "target/fuzz-findings")]
    findings: PathBuf,
    /// Lists the targets and what each promises.
    #[arg(long)]
    list: bool,
}

/// The corpora of the repository.
#[must_use]
pub fn corpora() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus")
}

/// Does what `arguments` say with these targets. Prints to standard output; the progress to standard error.
pub fn run(targets: &[Target], arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    ExitCode::from(code(targets, arguments))
}

/// As [`run`], with the plain exit code.
pub fn code(targets: &[Target], arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes; where printing fails, nothing can be told.
            let _ = error.print();
            return if error.use_stderr() { USAGE } else { 0 };
        }
    };
    let chosen = match chosen(targets, &arguments.names) {
        Ok(chosen) => chosen,
        Err(message) => {
            eprintln!("tenure-fuzz: {message}");
            return USAGE;
        }
    };
    let done = match &arguments.replay {
        _ if arguments.list => {
            for target in chosen {
                println!("{:16} {}", target.name, target.promise);
            }
            Ok(0)
        }
        Some(file) => replay(&chosen, file),
        None => look(&chosen, &arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("tenure-fuzz: {error}");
        FAILED
    })
}

fn chosen<'a>(targets: &'a [Target], names: &[String]) -> Result<Vec<&'a Target>, String> {
    if names.is_empty() {
        return Ok(targets.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            targets.iter().find(|target| target.name == name).ok_or_else(|| {
                let known: Vec<&str> = targets.iter().map(|target| target.name).collect();
                format!("no target {name:?}; there are {}", known.join(", "))
            })
        })
        .collect()
}

fn replay(targets: &[&Target], file: &Path) -> io::Result<u8> {
    let [target] = targets else {
        eprintln!("tenure-fuzz: --replay needs exactly one --target");
        return Ok(USAGE);
    };
    let input = fs::read(file).map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
    match execute(target, &input) {
        None => {
            println!("{}: nothing found in {}", target.name, file.display());
            Ok(0)
        }
        Some(finding) => {
            println!("{}: {} ({})", target.name, finding.message, finding.place);
            Ok(FOUND)
        }
    }
}

fn look(targets: &[&Target], arguments: &Arguments) -> io::Result<u8> {
    let count = u64::try_from(targets.len().max(1)).unwrap_or(u64::MAX);
    let each = arguments.executions.div_ceil(count);
    let effort = Effort {
        executions: each,
        seed: arguments.seed,
    };
    println!(
        "seed {}: the same seed, commit and corpora execute the same inputs",
        arguments.seed
    );
    let outcomes = search_all(targets, arguments, effort, &bar(each * count))?;
    println!("{}", total(&outcomes));
    Ok(report(&outcomes))
}

/// One target on each core: what a target executes depends on the seed alone. The outcomes in the order of
/// the targets.
fn search_all(
    targets: &[&Target],
    arguments: &Arguments,
    effort: Effort,
    bar: &ProgressBar,
) -> io::Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    let work = || -> io::Result<()> {
        // From the last, which is the slowest.
        while let Some(place) = targets
            .len()
            .checked_sub(next.fetch_add(1, Ordering::Relaxed) + 1)
        {
            let target = targets[place];
            bar.set_message(target.name);
            let corpus = Corpus::read(&arguments.corpus, target.name)?;
            let outcome = search(target, &corpus, effort, &arguments.findings, |done| bar.inc(done))?;
            bar.suspend(|| println!("{}", line(&outcome)));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.insert(place, outcome);
        }
        Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a worker panicked")))
        })
    })?;
    bar.finish_and_clear();
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(found.into_values().collect())
}

fn report(outcomes: &[Outcome]) -> u8 {
    let mut code = 0;
    for outcome in outcomes {
        let Some(found) = &outcome.found else { continue };
        code = FOUND;
        let path = found.path.display();
        println!(
            "\nFOUND by {}: {} ({})\n  input:  {path}\n  replay: cargo run -p tenure-fuzz -- --target {} \
             --replay {path}",
            outcome.name, found.finding.message, found.finding.place, outcome.name
        );
    }
    code
}

fn line(outcome: &Outcome) -> String {
    let seconds = outcome.took.as_secs_f64();
    format!(
        "{:16} executions {:>9}  corpus {:>5}  seconds {seconds:>7.1}  a second {:>8.0}  findings {}",
        outcome.name,
        outcome.executions,
        outcome.corpus,
        rate(outcome.executions, seconds),
        u8::from(outcome.found.is_some())
    )
}

fn total(outcomes: &[Outcome]) -> String {
    let executions: u64 = outcomes.iter().map(|outcome| outcome.executions).sum();
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
    let findings = outcomes.iter().filter(|outcome| outcome.found.is_some()).count();
    format!(
        "fuzz: {executions} executions of {} targets, {findings} findings, {seconds:.0} s of one core",
        outcomes.len()
    )
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a rate for people; counts stay far below 2^52"
)]
fn rate(executions: u64, seconds: f64) -> f64 {
    executions as f64 / seconds.max(0.001)
}

fn bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:16} {wide_bar} {pos}/{len} {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}
