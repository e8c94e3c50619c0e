//! The suite would notice: every planted defect fails the case that is there for it.
//!
//! Time is paused: whenever all tasks wait, the clock jumps. So thousands of cases, with all their waiting,
//! take seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use tenure_conformance::model::{Defect, FlawedSubject, ModelSubject};
use tenure_conformance::{CASE_TIME_MAX, CASES, Case, Fixture};
use tokio::task::{Id, JoinSet};

/// Runs every case, each on a fixture of its own, and answers which of them failed.
fn failing_cases(fixture: impl Fn() -> Fixture) -> BTreeSet<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a test can start a runtime");
    runtime.block_on(async {
        let mut running = JoinSet::new();
        let mut cases: BTreeMap<Id, &'static Case> = BTreeMap::new();
        for case in CASES {
            let fixture = fixture();
            let task = running.spawn(async move {
                let ended = tokio::time::timeout(CASE_TIME_MAX, (case.run)(&fixture)).await;
                assert!(ended.is_ok(), "case {} did not end", case.name);
            });
            cases.insert(task.id(), case);
        }
        let mut failing = BTreeSet::new();
        while let Some(ended) = running.join_next_with_id().await {
            if let Err(error) = ended {
                failing.insert(cases[&error.id()].name);
            }
        }
        failing
    })
}

/// The cases that each defect fails.
fn caught(defects: &[Defect]) -> BTreeMap<Defect, BTreeSet<&'static str>> {
    let caught = |defect: &Defect| {
        (
            *defect,
            failing_cases(|| Fixture::new(FlawedSubject::new(*defect))),
        )
    };
    defects.iter().map(caught).collect()
}

#[test]
fn every_defect_is_caught_by_the_case_that_is_there_for_it() {
    // Thousands of panics are expected here: their messages would drown the table.
    std::panic::set_hook(Box::new(|_| {}));
    let sound = failing_cases(|| Fixture::new(ModelSubject::new()));
    let halves = Defect::ALL.split_at(Defect::ALL.len() / 2);
    let (mut table, rest) = thread::scope(|scope| {
        let first = scope.spawn(|| caught(halves.0));
        let second = scope.spawn(|| caught(halves.1));
        (first.join().unwrap(), second.join().unwrap())
    });
    drop(std::panic::take_hook());
    table.extend(rest);

    let mut missed = Vec::new();
    let mut useful: BTreeSet<&str> = BTreeSet::new();
    for (defect, cases) in &table {
        let others = cases.len().saturating_sub(1);
        println!(
            "{:32} {} and {others} more",
            format!("{defect:?}"),
            defect.caught_by()
        );
        if !cases.contains(defect.caught_by()) {
            missed.push(format!("{defect:?} is not caught by {}", defect.caught_by()));
        }
        useful.extend(cases);
    }
    let idle: Vec<&str> = CASES
        .iter()
        .map(|case| case.name)
        .filter(|name| !useful.contains(name))
        .collect();
    println!("{} defects, {} cases", table.len(), CASES.len());
    assert_eq!(sound, BTreeSet::new(), "the sound model fails cases");
    assert_eq!(missed, Vec::<String>::new());
    assert_eq!(
        idle,
        Vec::<&str>::new(),
        "no defect fails these cases, so nothing shows that they can fail: plant one in src/model/defect.rs"
    );
}
