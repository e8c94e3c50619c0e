//! `tenure-sim sim`: many seeds.

use super::figure::{Figure, Verdict, grouped};
use super::{CLEAN, FAILED, VIOLATION, progress_bar};
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tenure_sim::{Campaign, CampaignOptions, Edit, FaultKind, Floor, Sometimes, Target, Totals, shrink};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Simulate at least so many leader-terms
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1_000_000,
        conflicts_with = "seeds"
    )]
    terms: u64,
    /// Simulate so many seeds
    #[arg(long, value_name = "NUMBER")]
    seeds: Option<u64>,
    /// The first seed; the others follow it
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    first_seed: u64,
    /// How many threads [default: as many as cores]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// So many candidates in every world, 2 to 9 [default: what the seeds say]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(2..=9))]
    candidates: Option<u8>,
}

/// Seconds of an average year.
const YEAR: f64 = 365.25 * 86_400.0;

pub(super) fn run(arguments: &Arguments) -> u8 {
    let options = CampaignOptions {
        first_seed: arguments.first_seed,
        target: arguments
            .seeds
            .map_or(Target::Terms(arguments.terms), Target::Seeds),
        threads: arguments.threads.map_or_else(cores, usize::from),
        edit: Edit {
            candidates: arguments.candidates,
            ..Edit::default()
        },
    };
    let (totals, took) = simulate(&options);
    print!("{}", in_words(&totals, took, options.threads));
    if !totals.violations.is_empty() {
        report_violations(&totals, &options.edit);
        return VIOLATION;
    }
    let below = totals.below_floor();
    for floor in &below {
        eprintln!("{}", floor_in_words(floor));
    }
    if below.is_empty() { CLEAN } else { FAILED }
}

/// The figures of the scoreboard: volume, years, speed, faults.
pub(super) fn figures(terms: u64) -> Vec<Figure> {
    let (totals, took) = simulate(&options(Target::SoundTerms(terms), cores(), None));
    let seconds = took.as_secs_f64();
    if !totals.violations.is_empty() {
        report_violations(&totals, &Edit::default());
    }
    let sound = totals.violations.is_empty();
    let below = totals.below_floor();
    let years = years(&totals);
    let years_target = f64::from(u32::try_from(terms / 1_000_000).unwrap_or(u32::MAX));
    let rarest = FaultKind::ALL
        .iter()
        .map(|kind| totals.faults.of(*kind))
        .min()
        .unwrap_or(0);
    let each = terms / 1_000;
    vec![
        Figure {
            what: "simulated leader-terms".to_owned(),
            target: format!(
                "{} with every assumption, 0 double leaders there, 0 stale writes accepted anywhere",
                grouped(terms)
            ),
            measured: format!(
                "{} with every assumption and {} beyond one, {} violations; two believed {} times where an assumption was \
                 broken on purpose; {} stale writes and {} stale claims refused",
                grouped(totals.sound_terms()),
                grouped(totals.fence_only_terms),
                totals.violations.len(),
                grouped(totals.sights.of(Sometimes::TwoBelieversBeyondAssumptions)),
                grouped(totals.sights.of(Sometimes::StaleWriteRefused)),
                grouped(totals.sights.of(Sometimes::StaleClaimRefused)),
            ),
            seconds,
            verdict: Verdict::of(sound && totals.sound_terms() >= terms),
        },
        Figure {
            what: "simulated election-years".to_owned(),
            target: format!("{years_target:.0}"),
            measured: format!("{years:.1}"),
            seconds,
            verdict: Verdict::of(sound && years >= years_target),
        },
        Figure {
            what: format!("kinds of fault, each at least {}", grouped(each)),
            target: "24".to_owned(),
            measured: format!(
                "{} kinds, the rarest {} times; {} below their floor",
                FaultKind::ALL.len(),
                grouped(rarest),
                below.len()
            ),
            seconds,
            verdict: Verdict::of(sound && below.is_empty() && FaultKind::ALL.len() >= 24 && rarest >= each),
        },
    ]
}

/// How fast that goes, in so many leader-terms.
pub(super) fn speed(terms: u64) -> Figure {
    let began = Instant::now();
    let (three, took) = simulate(&options(Target::Terms(terms), 1, Some(3)));
    let speed = rate(three.terms, took);
    Figure {
        what: "leader-terms a second on one core, three candidates".to_owned(),
        target: "30,000".to_owned(),
        measured: grouped(speed),
        seconds: began.elapsed().as_secs_f64(),
        verdict: Verdict::of_speed(three.violations.is_empty(), speed >= 30_000),
    }
}

fn options(target: Target, threads: usize, candidates: Option<u8>) -> CampaignOptions {
    CampaignOptions {
        first_seed: 1,
        target,
        threads,
        edit: Edit {
            candidates,
            ..Edit::default()
        },
    }
}

fn simulate(options: &CampaignOptions) -> (Totals, Duration) {
    let length = match options.target {
        Target::Terms(length) | Target::SoundTerms(length) | Target::Seeds(length) => length,
    };
    let bar = progress_bar(length, "sim");
    let began = Instant::now();
    let totals = Campaign::run(options, |seeds, terms| match options.target {
        Target::Terms(_) | Target::SoundTerms(_) => {
            bar.set_position(terms);
            bar.set_message("leader-terms");
        }
        Target::Seeds(_) => {
            bar.set_position(seeds);
            bar.set_message("seeds");
        }
    });
    bar.finish_and_clear();
    (totals, began.elapsed())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn years(totals: &Totals) -> f64 {
    totals.simulated as f64 / 1e9 / YEAR
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure for people"
)]
fn rate(count: u64, took: Duration) -> u64 {
    (count as f64 / took.as_secs_f64()) as u64
}

fn in_words(totals: &Totals, took: Duration, threads: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "simulated: {} leader-terms in {} seeds, {:.2} election-years, {} happenings",
        grouped(totals.terms),
        grouped(totals.seeds),
        years(totals),
        grouped(totals.happenings)
    );
    let _ = writeln!(
        text,
        "of these:  {} with every assumption, {} beyond one, where only the fence is promised, and in {} not even that",
        grouped(totals.sound_terms()),
        grouped(totals.fence_only_terms),
        grouped(totals.lapsed_terms)
    );
    let _ = writeln!(
        text,
        "speed:     {} leader-terms a second on {threads} thread(s), {:.1} s",
        grouped(rate(totals.terms, took)),
        took.as_secs_f64()
    );
    let faults = FaultKind::ALL
        .iter()
        .map(|kind| (kind.name(), totals.faults.of(*kind)));
    let _ = write!(text, "faults:    {}", columns(faults));
    let sights = Sometimes::ALL
        .iter()
        .map(|sight| (sight.name(), totals.sights.of(*sight)));
    let _ = write!(text, "sometimes: {}", columns(sights));
    text
}

/// Three counts a line, under each other.
fn columns(counts: impl Iterator<Item = (&'static str, u64)>) -> String {
    let cells: Vec<String> = counts
        .map(|(name, count)| format!("{name:<36}{:>12}", grouped(count)))
        .collect();
    let lines: Vec<String> = cells.chunks(2).map(|cells| cells.join("   ")).collect();
    lines.join("\n           ") + "\n"
}

fn floor_in_words(floor: &Floor) -> String {
    let rare = |what: &str, name: &str, count: u64| {
        format!(
            "{what} {name} happened only {} times: too rarely for this run to show much",
            grouped(count)
        )
    };
    match floor {
        Floor::Fault(kind, count) => rare("the fault", kind.name(), *count),
        Floor::Sight(sight, count) => rare("the sight", sight.name(), *count),
        Floor::SoundTerms(per_mille) => {
            format!("only {per_mille} of 1000 terms had every assumption; 800 must have")
        }
        Floor::LapsedTerms(per_mille) => {
            format!("in {per_mille} of 1000 terms not even the fence was promised; in 20 it may be so")
        }
        Floor::FewTerms(terms) => format!(
            "{} leader-terms are too few to show anything: what is rare happens once in {}",
            grouped(*terms),
            grouped(Sometimes::terms_of_the_rarest())
        ),
    }
}

/// What was broken, and how to see it again: shrunk to the faults that it needs.
fn report_violations(totals: &Totals, edit: &Edit) {
    for violation in &totals.violations {
        println!("\n{violation}");
        match shrink(violation.seed, edit) {
            Some(shrunk) => {
                for line in &shrunk.trace {
                    println!("  {line}");
                }
                let kept = shrunk.edit.keep.as_ref().map_or(shrunk.faults_before, Vec::len);
                println!(
                    "  {kept} of {} faults are enough, found in {} runs:",
                    shrunk.faults_before, shrunk.runs
                );
                println!("    {}", shrunk.command());
            }
            None => println!(
                "  cargo run -p tenure-sim --release -- replay --seed {}",
                violation.seed
            ),
        }
    }
    for violation in &totals.violations {
        println!("violation: {}: {violation}", violation.breach.law.name);
    }
}
