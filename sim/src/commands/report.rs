//! `tenure-sim report`: the scoreboard.

use super::figure::{Figure, Verdict, grouped};
use super::machine::Circumstances;
use super::part::{DebugBuilds, Summary};
use super::{CLEAN, FAILED, VIOLATION, model, mutants, part, replay, simulate};
use std::fmt::Write as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A fifth of what is simulated, fuzzed and scheduled, for each commit
    #[arg(long, conflicts_with_all = ["long", "write"])]
    quick: bool,
    /// The long form, hours instead of minutes
    #[arg(long)]
    long: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Write the scoreboard into VERIFICATION.md, in place of the last one of this form
    #[arg(long)]
    write: bool,
    /// Debug builds of this commit's tenure-fuzz, tenure-shell and tenure-sim, as the workspace's tests leave
    /// them in target/debug [default: they are built]
    #[arg(long, value_name = "FOLDER", value_parser = existing_folder)]
    built: Option<PathBuf>,
}

fn existing_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let missing = ["tenure-fuzz", "tenure-shell", "tenure-sim"]
        .into_iter()
        .find(|program| !path.join(program).is_file());
    match missing {
        Some(program) => Err(format!(
            "there is no {program} in it; build it: cargo build -p {program}"
        )),
        None => Ok(path),
    }
}

/// How much of everything that has no end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Quick,
    Short,
    Long,
}

impl Form {
    fn of(arguments: &Arguments) -> Self {
        match (arguments.quick, arguments.long) {
            (true, _) => Self::Quick,
            (false, true) => Self::Long,
            (false, false) => Self::Short,
        }
    }

    /// As its option is written on the command line.
    fn option(self) -> &'static str {
        match self {
            Self::Quick => " --quick",
            Self::Short => "",
            Self::Long => " --long",
        }
    }

    fn pick(self, quick: u64, short: u64, long: u64) -> u64 {
        match self {
            Self::Quick => quick,
            Self::Short => short,
            Self::Long => long,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Sim,
    Speed,
    Model,
    Mutants,
    Determinism,
    Fuzz,
    Shell,
    Spec,
}

const PARTS: [Part; 8] = [
    Part::Sim,
    Part::Speed,
    Part::Model,
    Part::Mutants,
    Part::Determinism,
    Part::Fuzz,
    Part::Shell,
    Part::Spec,
];

/// What all of this does not show. A report that leaves it out would promise too much.
const NOT_PROVEN: &str = "\
Not proven by any of this:
- that clocks keep to the bounds: beyond the rate error and the step allowance only the fence is promised;
- that a store keeps what it has acknowledged: the stores are models here; the real ones are held to the same
  contract by the conformance suite, on real servers, for minutes and not for years;
- more than nine candidates (simulator) or three (model), and more late messages at a time than the model keeps;
- the drivers, the operating system, the network stack: they are tested with real faults, not proven;
- effects outside a fence: an e-mail or a payment can happen twice around a change of leader.";

pub(super) fn run(arguments: &Arguments) -> u8 {
    let began = Instant::now();
    let circumstances = Circumstances::here();
    let builds = arguments
        .built
        .clone()
        .map_or(DebugBuilds::Made, DebugBuilds::Found);
    let is_asked = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let parts = PARTS.into_iter().filter(|part| is_asked(*part));
    let figures = measure_all(parts.collect(), arguments, &builds);
    let form = Form::of(arguments);
    let scoreboard = scoreboard(&circumstances, &figures, form, began.elapsed());
    print!("\n{scoreboard}");
    println!("\n{NOT_PROVEN}");
    if arguments.write
        && let Err(why) = write(&scoreboard, form)
    {
        eprintln!("VERIFICATION.md was left as it is: {why}");
        return FAILED;
    }
    if figures.iter().any(|figure| figure.verdict.fails()) {
        VIOLATION
    } else {
        CLEAN
    }
}

/// Every part after the other; but the short form's model, which has one thread, beside what keeps two cores
/// no busier: the mutants, whose copy is built in one long line.
fn measure_all(parts: Vec<Part>, arguments: &Arguments, builds: &DebugBuilds) -> Vec<Figure> {
    let beside = !arguments.long
        && [Part::Model, Part::Mutants]
            .iter()
            .all(|part| parts.contains(part));
    std::thread::scope(|scope| {
        let mut model = None;
        let mut figures = Vec::new();
        for part in parts {
            if beside && part == Part::Model {
                model = Some(scope.spawn(move || measure(part, arguments, builds)));
            } else {
                figures.extend(measure(part, arguments, builds));
            }
        }
        if let Some(model) = model {
            figures.extend(model.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        figures
    })
}

fn measure(part: Part, arguments: &Arguments, builds: &DebugBuilds) -> Vec<Figure> {
    let form = Form::of(arguments);
    match part {
        Part::Sim => simulate::figures(form.pick(2_000_000, 10_000_000, 100_000_000)),
        Part::Speed => vec![simulate::speed(form.pick(100_000, 100_000, 1_000_000))],
        Part::Model => model::figures(arguments.long),
        Part::Mutants => mutants::figures(arguments.write),
        Part::Determinism => replay::figures(form.pick(200, 1_000, 10_000), builds),
        Part::Fuzz => {
            let executions = form.pick(200_000, 1_000_000, 100_000_000);
            let arguments = ["--executions", &executions.to_string()];
            let summary = builds.run("fuzz: ", "tenure-fuzz", &arguments);
            let target = grouped(executions);
            vec![outside("fuzz executions without a finding", &target, summary)]
        }
        Part::Shell => {
            let each = form.pick(400, 2_000, 1_000_000);
            let arguments = ["--iterations", &each.to_string()];
            let summary = builds.run("shell: ", "tenure-shell", &arguments);
            let what = "schedules of the driver's threads (shuttle; loom for the deadline)";
            vec![outside(what, "0 failures", summary)]
        }
        Part::Spec => {
            let arguments: &[&str] = if arguments.long { &["--long"] } else { &[] };
            let target = "0 violations, every broken variant refuted";
            let summary = part::run("spec: ", "spec/check", arguments);
            vec![outside("the specification in TLA+", target, summary)]
        }
    }
}

/// A proof that is a program of its own.
fn outside(what: &str, target: &str, summary: Summary) -> Figure {
    Figure {
        what: what.to_owned(),
        target: target.to_owned(),
        measured: summary.line,
        seconds: summary.seconds,
        verdict: Verdict::of(summary.succeeded),
    }
}

fn scoreboard(circumstances: &Circumstances, figures: &[Figure], form: Form, took: Duration) -> String {
    let Circumstances {
        commit,
        compiler,
        machine,
        date,
        build,
    } = circumstances;
    let mut text = String::new();
    let option = form.option();
    let _ = writeln!(
        text,
        "`cargo run -p tenure-sim --release -- report{option}` on {date}, commit {commit},"
    );
    let _ = writeln!(text, "{compiler}, {build} build, {machine}:\n");
    let _ = writeln!(
        text,
        "| figure | target | measured | took | |\n|---|---|---|---|---|"
    );
    for figure in figures {
        let _ = writeln!(text, "{figure}");
    }
    let _ = writeln!(
        text,
        "\nIn all {:.0} s, builds of copies and of other programs included.",
        took.as_secs_f64()
    );
    text
}

/// Puts the scoreboard between its marks.
fn write(scoreboard: &str, form: Form) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../VERIFICATION.md");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let form = if form == Form::Long { "long" } else { "short" };
    let (begin, end) = (
        format!("<!-- {form} form -->\n"),
        format!("<!-- end of the {form} form -->"),
    );
    let place = || {
        let from = text.find(&begin)? + begin.len();
        let to = from + text.get(from..)?.find(&end)?;
        Some((text.get(..from)?, text.get(to..)?))
    };
    let (before, after) = place().ok_or_else(|| format!("its marks for the {form} form are gone"))?;
    std::fs::write(&path, format!("{before}{scoreboard}{after}")).map_err(|error| error.to_string())
}
