//! What one engine costs that holds few seats or many: `cargo bench -p tenure-core --bench seats`.
//!
//! Arguments: how many seats, one column each [default: 10 1000 10000 100000]. Times are on the processor and
//! the best of several rounds, so that what else the machine does counts little. A step should cost as much
//! with 100,000 seats as with 10, but for the depth of the maps; a beat should cost as much for each seat.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench has a clock"
)]

mod allocations;
mod load;

use load::Load;
use std::time::{Duration, Instant};

/// Rounds of which the best counts.
const ROUNDS: u32 = 5;

/// How long one round measures, at least.
const ROUND: Duration = Duration::from_millis(200);

/// What is measured with one number of seats.
struct Figures {
    seats: usize,
    idle_step: Duration,
    cycle: Duration,
    beat: Duration,
    beat_requests: usize,
    at_once: usize,
    bytes: usize,
}

fn main() {
    let given: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let seats = if given.is_empty() {
        vec![10, 1_000, 10_000, 100_000]
    } else {
        given
    };
    let figures: Vec<Figures> = seats.into_iter().map(measure).collect();
    print(&figures);
}

fn measure(seats: usize) -> Figures {
    let before = allocations::held();
    let mut load = Load::holding(seats);
    let bytes = (allocations::held() - before) / seats;
    let idle_step = best(|| load.idle_step());
    let cycle = best(|| load.cycle());
    let mut told = load::Beat::default();
    let beat = best(|| told = load.beat());
    Figures {
        seats,
        idle_step,
        cycle,
        beat,
        beat_requests: told.requests,
        at_once: told.at_once,
        bytes,
    }
}

/// The mean time on the processor of `run`, in the best round.
fn best(mut run: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let (began, before) = (Instant::now(), on_processor());
        let (mut runs, mut more) = (0, 1);
        // The clock is read ever more seldom, so that reading it is not what is measured.
        while began.elapsed() < ROUND {
            (0..more).for_each(|_| run());
            runs += more;
            more *= 2;
        }
        let took = match (before, on_processor()) {
            (Some(before), Some(after)) => after - before,
            (None, _) | (_, None) => began.elapsed(),
        };
        best = best.min(took / runs);
    }
    best
}

/// How long this thread has been on a processor, where the kernel tells it: what others do there does not
/// count.
fn on_processor() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = told.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

fn print(figures: &[Figures]) {
    row(figures, "seats held", |figures| figures.seats.to_string());
    row(figures, "idle step, ns", |figures| {
        figures.idle_step.as_nanos().to_string()
    });
    row(figures, "campaign, grant, step down, release, ns", |figures| {
        figures.cycle.as_nanos().to_string()
    });
    row(figures, "beat, ns a seat", |figures| {
        (figures.beat.as_nanos() / figures.seats as u128).to_string()
    });
    row(figures, "beat, requests", |figures| {
        figures.beat_requests.to_string()
    });
    row(figures, "beat, requests in flight at most", |figures| {
        figures.at_once.to_string()
    });
    row(figures, "of one core, with a beat each 10 s, %", |figures| {
        format!(
            "{:.3}",
            figures.beat.as_secs_f64() / load::BEAT.as_secs_f64() * 100.0
        )
    });
    row(figures, "bytes a seat", |figures| figures.bytes.to_string());
}

fn row(figures: &[Figures], what: &str, figure: impl Fn(&Figures) -> String) {
    print!("{what:<42}");
    for column in figures {
        print!("{:>12}", figure(column));
    }
    println!();
}
