//! The rows keep up with the sources that they change.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;
use tenure_mutants::{build, check_rows, copy, rows};

/// Fewest planted bugs that the project promises.
const ROWS_MIN: usize = 45;

/// Rows of the failure catalogue.
const CATALOGUE: std::ops::RangeInclusive<u8> = 1..=77;

fn of_workspace(file: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).ok()
}

#[test]
fn every_rows_words_are_found_once_in_the_shipped_sources() {
    if let Err(errors) = check_rows(rows(), of_workspace) {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", errors.join("\n"));
    }
}

/// The words of a row may be there as before, and what is planted in their place speak of what is not there
/// any more. The report, which would find that, comes last, and finds the copy built.
#[test]
fn shipped_sources_compile_with_every_bug_planted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = copy(&root.canonicalize().unwrap(), rows()).unwrap_or_else(|errors| panic!("{errors:?}"));
    build(&copy).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn there_are_as_many_rows_as_promised_and_each_changes_something() {
    assert!(rows().len() >= ROWS_MIN, "{} rows", rows().len());
    for row in rows() {
        assert!(!row.edits.is_empty(), "{}", row.name);
        for edit in row.edits {
            assert_ne!(edit.original, edit.planted, "{}", row.name);
        }
    }
    let bugs: BTreeSet<_> = rows()
        .iter()
        .map(|row| {
            row.edits
                .iter()
                .map(|edit| (edit.file, edit.original, edit.planted))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(bugs.len(), rows().len(), "two rows plant the same bug");
}

#[test]
fn every_row_names_a_guarantee_and_rows_of_the_catalogue_that_exist() {
    let guarantees = of_workspace("GUARANTEES.md").unwrap();
    for row in rows() {
        assert!(
            guarantees.contains(&format!("\n- [{}](", row.guarantee)),
            "{}: {}",
            row.name,
            row.guarantee
        );
        assert!(!row.catalogue.is_empty(), "{}", row.name);
        assert!(
            row.catalogue.iter().all(|number| CATALOGUE.contains(number)),
            "{}",
            row.name
        );
    }
}

#[test]
fn no_shipped_source_knows_of_planted_bugs() {
    let files: BTreeSet<&str> = rows()
        .iter()
        .flat_map(|row| row.edits)
        .map(|edit| edit.file)
        .collect();
    for file in files {
        assert!(!of_workspace(file).unwrap().contains("planted::is"), "{file}");
    }
}
