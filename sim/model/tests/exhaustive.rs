//! Small models are exhausted, reach what they are about, and count the same every time.

use tenure_model::{Configuration, Feature, Limits, Milestone, Model, Report};

fn searched(features: &[Feature], late_max: usize, distinct_max: u64) -> Report {
    let configuration = Configuration {
        features: features.to_vec(),
        late_max,
        ..Configuration::quick()
    };
    let limits = Limits {
        distinct_max,
        ..Limits::default()
    };
    let report = Model::new(configuration).search(limits, |_| {});
    if let Some(trace) = &report.violation {
        panic!("{trace}");
    }
    report
}

#[test]
fn two_candidates_without_faults_are_exhausted_the_same_way_twice() {
    let [first, second] = [(); 2].map(|()| searched(&[], 0, u64::MAX));
    assert!(first.exhausted && second.exhausted);
    let counts = |report: &Report| {
        (
            report.distinct,
            report.transitions,
            report.depth,
            report.situations,
        )
    };
    assert_eq!(counts(&first), counts(&second));
    // A floor: fewer states would mean that something no longer happens.
    assert!(first.distinct > 100_000, "{first:?}");
    let wanted = [
        Milestone::TakenOver,
        Milestone::TakenAfterRelease,
        Milestone::Renewed,
        Milestone::Departed,
        Milestone::EndedAtDeadline,
        Milestone::UnknownOutcome,
        Milestone::GrantedAgain,
    ];
    assert_eq!(first.reached.missing(&wanted), []);
}

#[test]
fn everything_that_needs_no_time_happens_early() {
    let report = searched(&Feature::ALL, 1, 100_000);
    assert!(!report.exhausted);
    let takes_time = [Milestone::TakenOver, Milestone::EndedAtDeadline];
    let early: Vec<Milestone> = Milestone::ALL
        .into_iter()
        .filter(|milestone| !takes_time.contains(milestone))
        .collect();
    assert_eq!(report.reached.missing(&early), []);
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
