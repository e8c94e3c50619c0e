//! Small models are exhausted, reach what they are about, and count the same every time.

use tenure_model::{Configuration, Feature, LEADS_WITHIN_TICKS, Limits, Milestone, Model, Report};

fn configuration(features: &[Feature], late_max: usize) -> Configuration {
    Configuration {
        features: features.to_vec(),
        late_max,
        ..Configuration::quick()
    }
}

fn first(distinct_max: u64) -> Limits {
    Limits {
        distinct_max,
        ..Limits::default()
    }
}

fn without_violation(report: &Report) {
    if let Some(trace) = &report.violation {
        panic!("{trace}");
    }
}

#[test]
fn two_candidates_that_crash_are_exhausted_and_always_find_a_leader() {
    let configuration = configuration(&[Feature::Crashes], 0);
    let (report, liveness) = Model::new(configuration.clone()).search_and_heal(Limits::default(), |_| {});
    without_violation(&report);
    assert!(report.exhausted, "{report}");
    // A floor: fewer states would mean that something no longer happens.
    assert!(report.distinct > 150_000, "{report}");
    assert_eq!(report.missing(&configuration), []);
    if let Some(trace) = &liveness.violation {
        panic!("{trace}");
    }
    assert_eq!(liveness.states, report.distinct);
    // Waiting for a dead holder's lease to expire takes long, and is among the continuations.
    assert!(
        (4..=LEADS_WITHIN_TICKS).contains(&liveness.slowest_ticks),
        "{liveness:?}"
    );
}

#[test]
fn everything_that_needs_no_time_happens_early() {
    let report = Model::new(configuration(&Feature::ALL, 1)).search(first(100_000), |_| {});
    without_violation(&report);
    assert!(!report.exhausted);
    let takes_time = [Milestone::TakenOver, Milestone::EndedAtDeadline];
    let early: Vec<Milestone> = Milestone::ALL
        .into_iter()
        .filter(|milestone| !takes_time.contains(milestone))
        .collect();
    assert_eq!(report.reached.missing(&early), []);
}

#[test]
fn two_searches_count_the_same() {
    let counts = [(); 2].map(|()| {
        let report = Model::new(Configuration::two_candidates()).search(first(60_000), |_| {});
        (
            report.distinct,
            report.transitions,
            report.depth,
            report.situations,
            report.steps,
        )
    });
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn three_candidates_explore_without_a_violation() {
    let report = Model::new(Configuration::three_candidates()).search(first(60_000), |_| {});
    without_violation(&report);
    assert!(report.distinct >= 60_000);
}

#[test]
fn a_search_stops_at_its_limits() {
    let shallow = Limits {
        depth_max: 3,
        ..Limits::default()
    };
    let report = Model::new(Configuration::quick()).search(shallow, |_| {});
    assert!(!report.exhausted && report.depth == 3, "{report:?}");
}
