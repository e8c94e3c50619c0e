//! What is planted in the parts keeps up with the sources whose words it changes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tenure_mutants::{PARTS_TABLE, check_part_rows, part_rows};

/// Fewest rows of each part.
const ROWS_MIN: usize = 6;

const PARTS: [&str; 11] = [
    "core",
    "driver",
    "etcd",
    "http",
    "mongodb",
    "mysql",
    "nats",
    "postgres",
    "redis",
    "sqlite",
    "watermark",
];

fn of_workspace(file: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).ok()
}

#[test]
fn every_rows_words_are_found_once_in_the_shipped_sources() {
    if let Err(errors) = check_part_rows(part_rows(), of_workspace) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", errors.join("\n"));
    }
}

#[test]
fn every_part_has_its_rows_and_each_changes_something() {
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut bugs = BTreeSet::new();
    for row in part_rows() {
        *counts.entry(row.part.name).or_default() += 1;
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
    let parts: Vec<&str> = counts.keys().copied().collect();
    assert_eq!(parts, PARTS);
    assert!(counts.values().all(|count| *count >= ROWS_MIN), "{counts:?}");
}

#[test]
fn every_row_names_a_guarantee_and_files_of_tests_that_exist() {
    let guarantees = of_workspace("GUARANTEES.md").unwrap();
    for row in part_rows() {
        let line_of_contents = format!("\n- [{}](", row.guarantee);
        assert!(
            guarantees.contains(&line_of_contents),
            "{}: {}",
            row.name,
            row.guarantee
        );
        assert!(!row.noticed_by.is_empty(), "{}", row.name);
        for begins in row.noticed_by {
            let module = begins.split("::").next().unwrap();
            let folder = row.part.folder;
            let files = [
                format!("{folder}/tests/{module}.rs"),
                format!("{folder}/src/{module}.rs"),
                format!("{folder}/src/{module}/mod.rs"),
            ];
            assert!(
                files.iter().any(|file| of_workspace(file).is_some()),
                "{}: there is none of {files:?}",
                row.name
            );
        }
    }
}

/// The campaign is too long for the usual run: so it has been made, with each row that there is.
#[test]
fn every_row_stands_in_the_table_with_the_test_that_notices_it() {
    let table = of_workspace(PARTS_TABLE).unwrap();
    let sections: BTreeMap<&str, &str> = table
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .collect();
    for row in part_rows() {
        let (begin, file) = (
            format!("| {} | {} | ", row.name, row.guarantee),
            format!("`{}` | `", row.file),
        );
        let is_of_row = |line: &str| {
            line.strip_prefix(&begin)
                .is_some_and(|rest| rest.starts_with(&file))
        };
        assert!(
            sections[row.part.name].lines().any(is_of_row),
            "{}: run `tenure-sim parts --part {} --row \"{}\" --write`",
            row.name,
            row.part.name,
            row.name
        );
    }
}
