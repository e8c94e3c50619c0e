//! The suite would notice what could be wrong with the compare-and-swap adaptor: every planted defect fails
//! the case that is there for it. Time is paused, so all the waiting takes no time.

use tenure_conformance::observed::{FlawedObservedSubject, ObservedDefect, ObservedSubject};
use tenure_conformance::{CASE_TIME_MAX, CASES, Case, Fixture, Subject};

/// Whether the case fails on this subject.
fn fails<S: Subject + 'static>(case: &'static Case, subject: impl FnOnce() -> S) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a test can start a runtime");
    runtime.block_on(async {
        let fixture = Fixture::new(subject());
        let running = tokio::spawn(async move {
            let ended = tokio::time::timeout(CASE_TIME_MAX, (case.run)(&fixture)).await;
            assert!(ended.is_ok(), "case {} did not end", case.name);
        });
        running.await.is_err()
    })
}

fn case(name: &str) -> &'static Case {
    CASES
        .iter()
        .find(|case| case.name == name)
        .unwrap_or_else(|| panic!("no case is called {name}"))
}

#[test]
fn every_defect_is_caught_by_the_case_that_is_there_for_it() {
    let missed: Vec<String> = ObservedDefect::ALL
        .iter()
        .filter(|defect| {
            !fails(case(defect.caught_by()), || {
                FlawedObservedSubject::new(Some(**defect))
            })
        })
        .map(|defect| format!("{defect:?} is not caught by {}", defect.caught_by()))
        .collect();
    assert_eq!(missed, Vec::<String>::new());
}

fn failing<S: Subject + 'static>(subject: impl Fn() -> S) -> Vec<&'static str> {
    let failing = CASES.iter().filter(|case| fails(case, &subject));
    failing.map(|case| case.name).collect()
}

#[test]
fn without_a_defect_no_case_fails_with_clocks_that_are_wrong_by_a_tenth() {
    let apart = || ObservedSubject::numbered().with_rate_error(100_000);
    assert_eq!(failing(apart), Vec::<&str>::new());
}

#[test]
fn without_a_defect_no_case_fails_with_slow_reads() {
    assert_eq!(failing(|| FlawedObservedSubject::new(None)), Vec::<&str>::new());
}
