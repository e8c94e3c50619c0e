//! The wrong statements keep up with the stores whose words they change.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tenure_mutants::{STORES_TABLE, check_store_rows, store_rows};

/// Fewest wrong statements of each store.
const ROWS_MIN: usize = 6;

const STORES: [&str; 7] = ["etcd", "mongodb", "mysql", "nats", "postgres", "redis", "sqlite"];

fn of_workspace(file: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).ok()
}

#[test]
fn every_wrong_statements_words_are_found_once_in_the_shipped_sources() {
    if let Err(errors) = check_store_rows(store_rows(), of_workspace) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", errors.join("\n"));
    }
}

#[test]
fn every_store_has_its_wrong_statements_and_each_changes_something() {
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut bugs = BTreeSet::new();
    for row in store_rows() {
        *counts.entry(row.store).or_default() += 1;
        assert!(!row.edits.is_empty(), "{}", row.name);
        for [original, planted] in row.edits {
            assert_ne!(original, planted, "{}", row.name);
        }
        assert!(
            bugs.insert((row.path(), row.edits)),
            "two rows plant the same bug: {}",
            row.name
        );
    }
    let stores: Vec<&str> = counts.keys().copied().collect();
    assert_eq!(stores, STORES);
    assert!(counts.values().all(|count| *count >= ROWS_MIN), "{counts:?}");
}

#[test]
fn every_wrong_statement_names_a_guarantee_and_files_of_tests_that_exist() {
    let guarantees = of_workspace("GUARANTEES.md").unwrap();
    for row in store_rows() {
        let heading = format!("\n### {} · ", row.guarantee);
        assert!(guarantees.contains(&heading), "{}: {}", row.name, row.guarantee);
        assert!(!row.noticed_by.is_empty(), "{}", row.name);
        for begins in row.noticed_by {
            let module = begins.split("::").next().unwrap();
            let file = format!("{}/tests/{module}.rs", row.folder());
            assert!(of_workspace(&file).is_some(), "{}: there is no {file}", row.name);
        }
    }
}

/// The campaign is too long for the usual run: so it has been made, with each row that there is.
#[test]
fn every_wrong_statement_stands_in_the_table_with_the_test_that_notices_it() {
    let table = of_workspace(STORES_TABLE).unwrap();
    let sections: BTreeMap<&str, &str> = table
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .collect();
    for row in store_rows() {
        let (begin, file) = (
            format!("| {} | {} | ", row.name, row.guarantee),
            format!("`{}` | `", row.file),
        );
        let is_of_row = |line: &str| {
            line.strip_prefix(&begin)
                .is_some_and(|rest| rest.starts_with(&file))
        };
        assert!(
            sections[row.store].lines().any(is_of_row),
            "{}: run `tenure-sim stores --store {} --row \"{}\" --write`",
            row.name,
            row.store,
            row.name
        );
    }
}
