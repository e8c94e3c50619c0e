//! Watching the clock that leases expire by: does it run as fast as ours, and does it step?
//!
//! What a store's clock says of the time of day decides nothing; how evenly it runs does. So a lease of the
//! doctor's own is read again and again: what remains of it must shrink as fast as our own time passes.

use crate::commands::look::answer;
use crate::output::short;
use std::time::Duration;
use tenure::contract::{Finding, Moment, Occupancy, Timekeeper, Verdict};
use tenure::{LeaseName, LeaseStore, StoreError, Timing, clock_now};

/// Pause between two readings.
const READ_EVERY: Duration = Duration::from_millis(100);

/// What helps against steps.
const NOT_STEPPED: &str = "have the server's clock slewed, not stepped, and slowly (chrony with maxslewrate 500; its default is 83333); until \
                           then only the fence protects";

/// Parts of a million.
const MILLION: f64 = 1_000_000.0;

/// One reading: when, by our clock, with what uncertainty, and what remained. Seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Reading {
    at: f64,
    uncertain: f64,
    remaining: f64,
}

/// What was seen of a clock.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Seen {
    /// The largest step that cannot be an effect of the uncertainty: forward if positive. Seconds.
    step: f64,
    /// How much faster it runs than ours, in parts of a million, and the uncertainty of that.
    rate: f64,
    rate_uncertain: f64,
}

/// Why there are no readings.
enum NotWatched {
    /// The lease was gone so long after the watching began.
    Gone(Duration),
    /// It could not be read.
    Unable(StoreError),
}

/// Watches the store's clock for so long, by a lease that is held for longer.
pub(super) async fn watch(
    store: &dyn LeaseStore,
    name: &LeaseName,
    timing: &Timing,
    time: Duration,
) -> Finding {
    let grain = match store.traits().timekeeper {
        Timekeeper::Server => 0.001,
        // A session's time is told in whole seconds.
        Timekeeper::Session => 1.0,
        Timekeeper::Observer => {
            let detail = "the store times nothing: whoever waits counts by its own clock";
            return finding(Verdict::Good, detail.to_owned(), None);
        }
    };
    match readings(store, name, time, grain).await {
        Ok(readings) => {
            let (verdict, detail, repair) = judge(seen(&readings), timing, time);
            finding(verdict, detail, repair)
        }
        Err(NotWatched::Gone(after)) => gone(name, after),
        Err(NotWatched::Unable(error)) => {
            let detail = format!("could not be watched: {}", error.message);
            let repair = "look at it by hand; it judges every expiry";
            finding(Verdict::Warning, detail, Some(repair))
        }
    }
}

/// The lease was gone so long after it was taken.
pub(super) fn gone(name: &LeaseName, after: Duration) -> Finding {
    let detail = format!(
        "lease \"{name}\" was gone {} after it was taken, a minute or more before its time: the clock was set far ahead, or \
         the store forgets",
        short(after)
    );
    finding(Verdict::Bad, detail, Some(NOT_STEPPED))
}

fn finding(verdict: Verdict, detail: String, repair: Option<&str>) -> Finding {
    Finding {
        subject: "clock's run".to_owned(),
        verdict,
        detail,
        repair: repair.map(ToOwned::to_owned),
    }
}

fn judge(seen: Seen, timing: &Timing, time: Duration) -> (Verdict, String, Option<&'static str>) {
    let (allowed, bound) = (timing.step_allowance(), timing.clock_rate_error_ppm());
    let surely_off = (seen.rate.abs() - seen.rate_uncertain).max(0.0);
    let step = Duration::from_secs_f64(seen.step.abs());
    if step > allowed {
        let direction = if seen.step > 0.0 { "forward" } else { "back" };
        let detail = format!(
            "stepped {direction} by {} within {}; the timing allows for {}",
            short(step),
            short(time),
            short(allowed)
        );
        return (Verdict::Bad, detail, Some(NOT_STEPPED));
    }
    if !step.is_zero() {
        // A step is in the rate, too: of that nothing can be said.
        let detail = format!(
            "steps of at most {} within {}, of {} allowed",
            short(step),
            short(time),
            short(allowed)
        );
        return (Verdict::Good, detail, None);
    }
    if surely_off > 2.0 * f64::from(bound) {
        let detail = format!(
            "runs off ours by at least {surely_off:.0} parts of a million; two clocks may differ by {}",
            2 * bound
        );
        let repair = "synchronise both clocks, slowly (chrony with maxslewrate 500; its default is 83333); until then only the \
                      fence protects";
        return (Verdict::Bad, detail, Some(repair));
    }
    let off = (seen.rate.abs() + seen.rate_uncertain).ceil();
    let allowed = 2 * bound;
    let detail = match off > f64::from(allowed) {
        // Not a finding: it was not looked at for long enough to tell.
        true => format!(
            "no step within {}, too short a look to see whether it runs off ours by {allowed} parts of a million; --clock-for 10m \
             does",
            short(time)
        ),
        false => format!(
            "no step within {}, as fast as ours to within {off:.0} parts of a million, of {allowed} allowed",
            short(time)
        ),
    };
    (Verdict::Good, detail, None)
}

async fn readings(
    store: &dyn LeaseStore,
    name: &LeaseName,
    time: Duration,
    grain: f64,
) -> Result<Vec<Reading>, NotWatched> {
    let began = clock_now();
    let mut readings = Vec::new();
    while clock_now().since(began) < time {
        let sent = clock_now();
        let lease = answer(store.get(name)).await.map_err(NotWatched::Unable)?;
        let received = clock_now();
        let lease = lease.filter(|lease| lease.occupancy() == Occupancy::Held);
        let lease = lease.ok_or_else(|| NotWatched::Gone(received.since(began)))?;
        readings.push(reading(began, sent, received, lease.remaining, grain));
        tokio::time::sleep(READ_EVERY).await;
    }
    Ok(readings)
}

fn reading(began: Moment, sent: Moment, received: Moment, remaining: Duration, grain: f64) -> Reading {
    let half = received.since(sent).as_secs_f64() / 2.0;
    Reading {
        at: sent.since(began).as_secs_f64() + half,
        uncertain: half + grain,
        remaining: remaining.as_secs_f64(),
    }
}

/// What the readings tell for certain.
fn seen(readings: &[Reading]) -> Seen {
    // How far the store's clock is ahead of ours, but for a constant.
    let ahead = |reading: &Reading| -reading.remaining - reading.at;
    let mut seen = Seen::default();
    for pair in readings.windows(2) {
        let [before, after] = pair else { continue };
        let moved = ahead(after) - ahead(before);
        let surely = (moved.abs() - before.uncertain - after.uncertain).max(0.0);
        if surely > seen.step.abs() {
            seen.step = surely.copysign(moved);
        }
    }
    if let ([first, ..], [.., last]) = (readings, readings)
        && last.at > first.at
    {
        let passed = last.at - first.at;
        seen.rate = (ahead(last) - ahead(first)) / passed * MILLION;
        seen.rate_uncertain = (first.uncertain + last.uncertain) / passed * MILLION;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        Timing::of(tenure::Ttl::from_secs(30).unwrap())
    }

    /// Readings each 100 ms for two seconds, of a clock that is ahead by this.
    fn of(ahead: impl Fn(f64) -> f64) -> Seen {
        let readings: Vec<Reading> = (0..20)
            .map(|number| {
                let at = f64::from(number) / 10.0;
                Reading {
                    at,
                    uncertain: 0.002,
                    remaining: 60.0 - at - ahead(at),
                }
            })
            .collect();
        seen(&readings)
    }

    fn judged(seen: Seen) -> (Verdict, String) {
        let (verdict, detail, _) = judge(seen, &timing(), Duration::from_secs(2));
        (verdict, detail)
    }

    #[test]
    fn an_even_clock_is_good_whatever_the_jitter_of_the_network() {
        let seen = of(|at| {
            if ((at * 10.0) as u32).is_multiple_of(2) {
                0.0015
            } else {
                -0.0015
            }
        });
        assert!(seen.step.abs() < 1e-9, "{seen:?}");
        assert_eq!(judged(seen).0, Verdict::Good);
    }

    #[test]
    fn a_step_is_seen_with_its_direction_and_is_bad_beyond_the_allowance() {
        let allowed = timing().step_allowance().as_secs_f64();
        let small = of(|at| if at < 1.0 { 0.0 } else { allowed / 2.0 + 0.004 });
        assert!((small.step - allowed / 2.0).abs() < 1e-6, "{small:?}");
        assert_eq!(judged(small).0, Verdict::Good);
        for (direction, far) in [("forward", allowed + 0.1), ("back", -allowed - 0.1)] {
            let (verdict, detail) = judged(of(|at| if at < 1.0 { 0.0 } else { far }));
            assert_eq!(verdict, Verdict::Bad);
            assert!(detail.contains(&format!("stepped {direction}")), "{detail}");
        }
    }

    #[test]
    fn a_clock_that_runs_off_is_bad_only_if_it_surely_does() {
        let bound = f64::from(timing().clock_rate_error_ppm());
        let off = |ppm: f64| of(move |at| at * ppm / MILLION);
        // Twenty readings of two milliseconds tell no less than about two thousand parts of a million.
        assert_eq!(judged(off(2.0 * bound)).0, Verdict::Good);
        let (verdict, detail) = judged(off(2.0 * bound + 5_000.0));
        assert_eq!(verdict, Verdict::Bad, "{detail}");
    }
}
