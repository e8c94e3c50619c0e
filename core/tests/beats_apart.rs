//! Processes that begin together, or get their store back together, do not all renew at once from then on.

use crate::harness::*;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;
use tenure_core::*;

const PROCESSES: u64 = 64;

/// A process with this seed, which leads `job`, granted at the same moment to each.
fn leading(seed: u64) -> Harness {
    let mut harness = Harness::new();
    harness.engine = Engine::new(me(), timing(), NonZeroUsize::MIN, seed);
    let request = harness.campaign_once();
    harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    harness
}

/// Lets time pass to the next renewal, which is granted; how long that was.
fn beat(harness: &mut Harness) -> Duration {
    let before = harness.now;
    let request = harness.run_to_request();
    assert!(matches!(request.operation, Operation::Renew(_)), "{request:?}");
    harness.answer(request.id, Reply::Renewed(vec![Ok(extended())]));
    harness.now.since(before)
}

fn spread_of(moments: impl Iterator<Item = Duration>) -> (usize, Duration) {
    let moments: BTreeSet<Duration> = moments.collect();
    let (first, last) = (moments.first().unwrap(), moments.last().unwrap());
    (moments.len(), *last - *first)
}

#[test]
fn processes_that_begin_together_beat_apart() {
    let whole = timing().renew_every();
    let mut processes: Vec<Harness> = (0..PROCESSES).map(leading).collect();
    let first: Vec<Duration> = processes.iter_mut().map(beat).collect();
    for interval in &first {
        assert!((whole * 3 / 4..=whole).contains(interval), "{interval:?}");
    }
    let (moments, spread) = spread_of(first.into_iter());
    assert!(moments > 48, "only {moments} moments");
    assert!(spread > whole / 5, "{spread:?}");
    // On the grid that standbys count on, from then on.
    for harness in &mut processes {
        assert_eq!(beat(harness), whole);
        assert_eq!(beat(harness), whole);
    }
}

#[test]
fn all_leases_of_a_process_beat_together() {
    let mut harness = Harness::new();
    harness.engine = Engine::new(me(), timing(), NonZeroUsize::new(10).unwrap(), 3);
    for lease in 0..10 {
        let campaign = Command::Campaign {
            name: name(&format!("{lease}")),
            note: Note::default(),
            progress_within: None,
            max_hold: None,
        };
        let request = only(harness.command(campaign));
        harness.answer(request.id, Reply::Acquired(Ok(grant(5))));
    }
    let request = harness.run_to_request();
    assert!(matches!(&request.operation, Operation::Renew(renewals) if renewals.len() == 10));
}

#[test]
fn processes_that_get_their_store_back_together_beat_apart_again() {
    let whole = timing().renew_every();
    let came_back = Harness::new().now.after(whole * 2 + timing().retry_every());
    let after_outage = (0..PROCESSES).map(|seed| {
        let mut harness = leading(seed);
        beat(&mut harness);
        let failed = harness.run_to_request();
        harness.answer(failed.id, Reply::Renewed(vec![Err(unreachable())]));
        harness.now = came_back;
        let request = only(harness.input(Input::Tick));
        harness.answer(request.id, Reply::Renewed(vec![Ok(extended())]));
        beat(&mut harness)
    });
    let (moments, spread) = spread_of(after_outage);
    assert!(moments > 48, "only {moments} moments");
    assert!(spread > whole / 5, "{spread:?}");
}
