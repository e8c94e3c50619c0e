//! `tenure-sim replay`: a seed again, or what a real process did.

use super::figure::{Figure, Verdict, grouped};
use super::part::DebugBuilds;
use super::{CLEAN, FAILED, VIOLATION};
use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tenure_sim::{Edit, Narrator, Violation, determinism, replay};
use tenure_trace::{TermSpan, TraceError};

#[derive(clap::Args)]
#[group(id = "what", required = true, args = ["seed", "seeds", "trace"])]
pub(super) struct Arguments {
    /// The seed to run again, told line by line
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Which of its faults come: their ordinals, or none [default: all]
    #[arg(long, value_name = "ORDINALS", value_parser = kept_faults, requires = "seed")]
    keep: Option<Kept>,
    /// How many candidates [default: what the seed says]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(2..=9), requires = "seed")]
    candidates: Option<u8>,
    /// When to end, as 35.2s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, requires = "seed")]
    until: Option<Duration>,
    /// Print the one hash of all traces of this many seeds, from 1 on
    #[arg(long, value_name = "NUMBER")]
    seeds: Option<u64>,
    /// Traces of real processes, as `tenure run --trace FILE` records them: each is replayed through the
    /// engine and checked, several of one machine are held against each other. One that is open at the end
    /// tells only a part: its process was killed, or its recording stopped. A term that it ends in is
    /// undecided if another's begins after that part and before the term's deadline: no violation if the
    /// process had been killed by then, and not counted as one
    #[arg(long, value_name = "FILE", num_args = 1..)]
    trace: Vec<PathBuf>,
}

/// What the shell calls an end by SIGPIPE.
const UNREAD: i32 = 128 + 13;

/// Says a line on standard output.
macro_rules! say {
    ($($said:tt)*) => {
        write_line(format_args!($($said)*))
    };
}

/// A reader that has gone away (`| head`) ends the process quietly, as it does `ls`.
fn write_line(line: fmt::Arguments<'_>) {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(UNREAD),
        Err(error) => panic!("cannot write to standard output: {error}"),
    }
}

/// The faults that are kept.
#[derive(Clone, Debug)]
struct Kept(Vec<u32>);

fn kept_faults(text: &str) -> Result<Kept, String> {
    if text == "none" {
        return Ok(Kept(Vec::new()));
    }
    let ordinal = |part: &str| {
        part.parse::<u32>()
            .map_err(|_| format!("\"{part}\" is no ordinal of a fault; write 4,17,33 or none"))
    };
    let mut ordinals = text
        .split(',')
        .map(ordinal)
        .collect::<Result<Vec<u32>, String>>()?;
    ordinals.sort_unstable();
    ordinals.dedup();
    Ok(Kept(ordinals))
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    if let Some(seed) = arguments.seed {
        return run_seed(seed, arguments);
    }
    if let Some(seeds) = arguments.seeds {
        say!("hash of {seeds} seeds: {:016x}", combined(seeds));
        return CLEAN;
    }
    run_traces(&arguments.trace)
}

fn run_seed(seed: u64, arguments: &Arguments) -> u8 {
    let edit = Edit {
        keep: arguments.keep.as_ref().map(|kept| kept.0.clone()),
        candidates: arguments.candidates,
        until: arguments
            .until
            .map(|until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX)),
        ..Edit::default()
    };
    let outcome = replay(seed, &edit, Some(Narrator::new(&mut |line| say!("{line}"))));
    say!(
        "seed {seed}: {} terms, {} happenings in {:.1?}, trace hash {:016x}",
        grouped(outcome.terms),
        grouped(outcome.happenings),
        Duration::from_nanos(outcome.simulated),
        outcome.trace_hash
    );
    match &outcome.violation {
        Some(violation) => {
            say!("violation: {}: {violation}", name_of(violation));
            VIOLATION
        }
        None => CLEAN,
    }
}

fn name_of(violation: &Violation) -> &'static str {
    violation.breach.law.name
}

/// One hash over the traces of the seeds 1, 2, 3, …
fn combined(seeds: u64) -> u64 {
    determinism(1..seeds.saturating_add(1))
        .into_iter()
        .fold(0, |sum, (_, hash)| {
            (sum.rotate_left(7) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
}

fn run_traces(paths: &[PathBuf]) -> u8 {
    let mut worst = CLEAN;
    for path in paths {
        match run_trace(path) {
            Ok(code) => worst = worst.max(code),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                worst = worst.max(FAILED);
            }
        }
    }
    // Beside a trace that cannot be read, the others may look as if nothing had come between them.
    if paths.len() < 2 || worst == FAILED {
        return worst;
    }
    match tenure_trace::merge_files(paths) {
        Ok(merged) => {
            say!(
                "together: {} terms, {} of them passed on, {} undecided, {} steps",
                grouped(merged.terms),
                grouped(merged.passed_on),
                merged.undecided.len(),
                grouped(merged.steps)
            );
            for (trace, term) in &merged.undecided {
                say!(
                    "undecided: trace: {}: {}",
                    paths[*trace].display(),
                    undecided(term)
                );
            }
            let Some((trace, breach)) = merged.breach else {
                return worst;
            };
            say!("violation: trace: {}: {breach}", paths[trace].display());
            VIOLATION
        }
        Err(error) => {
            eprintln!("{error}");
            FAILED
        }
    }
}

fn undecided(term: &TermSpan) -> String {
    let TermSpan {
        name,
        token,
        line,
        until,
        recorded_until,
        ..
    } = term;
    format!(
        "line {line}: lease \"{name}\": term {token} is recorded until {recorded_until:?}, and another began before \
         its deadline {until:?}; two believed at once if its process still lived then, and not if it had been killed"
    )
}

fn run_trace(path: &Path) -> Result<u8, TraceError> {
    for line in tenure_trace::narrate_file(path)? {
        say!("{}", line?);
    }
    let replayed = tenure_trace::replay_file(path)?;
    if let Some(line) = replayed.truncated {
        say!("{}: line {line} is cut off; it was left out", path.display());
    }
    let checked = tenure_trace::check_file(path)?;
    say!(
        "{}: the engine repeats {} steps; {} terms checked",
        path.display(),
        grouped(replayed.steps),
        grouped(u64::try_from(checked.terms.len()).unwrap_or(u64::MAX))
    );
    let mut code = CLEAN;
    if let tenure_trace::Verdict::Different(difference) = &replayed.verdict {
        say!("violation: trace: {}: {difference}", path.display());
        code = VIOLATION;
    }
    if checked.open && checked.breach.is_none() {
        say!(
            "{}: open at the end: it was killed, or its recording stopped; what it did afterwards is not known",
            path.display()
        );
    }
    if let Some(breach) = &checked.breach {
        say!("violation: trace: {}: {breach}", path.display());
        code = VIOLATION;
    }
    Ok(code)
}

/// The figure of the scoreboard: every seed twice, and a part of them in a debug build too.
pub(super) fn figures(seeds: u64, builds: &DebugBuilds) -> Vec<Figure> {
    let began = Instant::now();
    let equal = determinism(1..seeds + 1) == determinism(1..seeds + 1);
    let few = seeds / 10;
    let here = format!("{few} seeds: {:016x}", combined(few));
    let replay = ["replay", "--seeds", &few.to_string()];
    let debug = builds.run("hash of ", "tenure-sim", &replay);
    let debug_equal = debug.succeeded && debug.line == here;
    let said = |equal| if equal { "all equal" } else { "NOT equal" };
    vec![Figure {
        what: "seeds replayed with equal trace hash".to_owned(),
        target: format!("{} twice", grouped(seeds)),
        measured: format!(
            "{} twice: {}; {} of them in a debug build: {}",
            grouped(seeds),
            said(equal),
            grouped(few),
            said(debug_equal)
        ),
        seconds: began.elapsed().as_secs_f64(),
        verdict: Verdict::of(equal && debug_equal),
    }]
}
