//! `tenure-sim model`: every reachable state.

use super::figure::{Figure, Verdict, grouped};
use super::{CLEAN, VIOLATION, progress_bar};
use tenure_model::{Configuration, LEADS_WITHIN_TICKS, Limits, Milestone, Milestones, Model, Report, Trace};

#[derive(clap::Args)]
#[group(multiple = false)]
pub(super) struct Which {
    /// The smallest one, in which most planted bugs are found: seconds
    #[arg(long)]
    quick: bool,
    /// Two candidates with late messages, crashes, and holders that are asked to step down (the default)
    #[arg(long)]
    two: bool,
    /// Two candidates from every side, one configuration after the other: minutes
    #[arg(long)]
    slices: bool,
    /// Three candidates: some 10^8 states and gigabytes of memory
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
    /// Then follow, from every state, the continuation without faults: somebody must lead in time
    #[arg(long, conflicts_with = "three")]
    heal: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let configurations = if arguments.which.quick {
        vec![Configuration::quick()]
    } else if arguments.which.three {
        vec![Configuration::three_candidates()]
    } else if arguments.which.slices {
        Configuration::slices()
    } else {
        vec![Configuration::two_candidates()]
    };
    let mut worst = CLEAN;
    for configuration in configurations {
        println!("{configuration}");
        let searched = search(&configuration, arguments.states, arguments.heal);
        println!("{}", in_words(&searched.report));
        worst = worst.max(searched.tell(&configuration));
    }
    worst
}

/// What a search, and perhaps the healing after it, came to.
struct Searched {
    report: Report,
    /// The longest way to a leader in ticks, and a way to a state from which nobody leads in time.
    healed: Option<(u32, Option<Trace>)>,
}

impl Searched {
    fn violation(&self) -> Option<&Trace> {
        let unhealed = self.healed.as_ref().and_then(|(_, violation)| violation.as_ref());
        self.report.violation.as_ref().or(unhealed)
    }

    fn tell(&self, configuration: &Configuration) -> u8 {
        if let Some((ticks, None)) = &self.healed {
            println!(
                "from every state somebody leads within {ticks} ticks; {LEADS_WITHIN_TICKS} are allowed"
            );
        }
        if let Some(trace) = self.violation() {
            println!("{trace}");
            println!(
                "violation: {}: after {} moves, above",
                trace.broken,
                trace.lines.len()
            );
            return VIOLATION;
        }
        let missing = self.report.missing(configuration);
        if !self.report.exhausted || missing.is_empty() {
            return CLEAN;
        }
        for milestone in &missing {
            println!("violation: sometimes-{milestone:?}: everything was explored, and it never happened");
        }
        VIOLATION
    }
}

/// The figures of the scoreboard: two candidates whole, and from two sides more; in the long form from every
/// side, and three.
pub(super) fn figures(long: bool) -> Vec<Figure> {
    let two = search(&Configuration::two_candidates(), None, false);
    let mut figures = vec![figure("distinct states, two candidates", 1_000_000, &two.report)];
    if long {
        let every_side = "two candidates from every side, and healing from every state";
        figures.push(slices(every_side, Configuration::slices(), true));
        let three = search(&Configuration::three_candidates(), None, false);
        figures.push(figure(
            "distinct states, three candidates",
            100_000_000,
            &three.report,
        ));
    } else {
        let sides = "two candidates: errors, hints and withdrawals; crashes and the fence";
        figures.push(slices(sides, Configuration::slices_of_every_run(), false));
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

/// Several configurations as one figure; with `heal` also the continuation without faults from every state.
fn slices(what: &str, configurations: Vec<Configuration>, heal: bool) -> Figure {
    let (mut states, mut seconds) = (0, 0.0);
    let (mut sound, mut count, mut slowest) = (true, 0_u32, 0);
    let (mut reached, mut wanted) = (Milestones::default(), Vec::new());
    for configuration in configurations {
        let searched = search(&configuration, None, heal);
        states += searched.report.distinct;
        seconds += searched.report.seconds;
        reached.join(searched.report.reached);
        wanted.extend(configuration.milestones());
        sound &= searched.report.exhausted && searched.tell(&configuration) == CLEAN;
        slowest = searched
            .healed
            .as_ref()
            .map_or(slowest, |(ticks, _)| slowest.max(*ticks));
        count += 1;
    }
    if heal {
        wanted = Milestone::ALL.to_vec();
    }
    let missing = reached.missing(&wanted).len();
    let healed = if heal {
        format!(", a leader within {slowest} ticks of {LEADS_WITHIN_TICKS}")
    } else {
        String::new()
    };
    Figure {
        what: what.to_owned(),
        target: "exhausted, 0 violations, every milestone reached".to_owned(),
        measured: format!(
            "{} states in {count} configurations, {} exhausted, {missing} milestones missing{healed}",
            grouped(states),
            if sound { "all" } else { "not all" },
        ),
        seconds,
        verdict: Verdict::of(sound && missing == 0),
    }
}

fn search(configuration: &Configuration, states: Option<u64>, heal: bool) -> Searched {
    let limits = Limits::default();
    let limits = Limits {
        distinct_max: states.unwrap_or(limits.distinct_max),
        ..limits
    };
    let bar = progress_bar(0, "model");
    let mut model = Model::new(configuration.clone());
    let progress = |progress: tenure_model::Progress| {
        // What is known so far: it ends when nothing waits any more.
        bar.set_length(progress.distinct);
        bar.set_position(progress.distinct.saturating_sub(progress.waiting));
        bar.set_message(format!("states, {} moves deep", progress.depth));
    };
    let searched = if heal {
        let (report, liveness) = model.search_and_heal(limits, progress);
        let healed = Some((liveness.slowest_ticks, liveness.violation));
        Searched { report, healed }
    } else {
        let report = model.search(limits, progress);
        Searched { report, healed: None }
    };
    bar.finish_and_clear();
    searched
}

fn in_words(report: &Report) -> String {
    format!(
        "{} distinct states, {} moves, {} deep, {}; {} violations; made of {} different steps of the real engine",
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
