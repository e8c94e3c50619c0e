//! Each row of the failure catalogue has its line: what shows that it does no harm, or why nothing does.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tenure_mutants::rows;

/// Rows of the failure catalogue.
const ROWS: std::ops::RangeInclusive<u8> = 1..=77;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources below a folder, all in one.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_row_of_the_catalogue_has_its_test_its_bug_or_a_reason() {
    let text = std::fs::read_to_string(workspace().join("sim/mutants/CATALOGUE.md")).unwrap();
    let mut code = String::new();
    sources(&workspace(), &mut code);
    let words = |line: &str| -> Vec<String> {
        let named = line.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        named.map(str::to_owned).collect()
    };
    let known: BTreeSet<String> = code.lines().flat_map(words).collect();
    let planted: BTreeSet<u8> = rows().iter().flat_map(|row| row.catalogue).copied().collect();
    let mut next = ROWS;
    for line in text.lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let Some(number) = cells[0]
            .strip_prefix("| ")
            .and_then(|number| number.parse::<u8>().ok())
        else {
            continue;
        };
        assert_eq!(next.next(), Some(number), "{line}");
        let shown = cells[2].trim_end_matches(" |");
        for name in shown
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.contains('_'))
        {
            assert!(known.contains(name), "there is no {name}: {line}");
        }
        let says_planted = shown.split([',', ';']).any(|part| part.trim() == "planted");
        assert_eq!(says_planted, planted.contains(&number), "{line}");
        assert!(!shown.is_empty(), "{line}");
    }
    assert_eq!(next.next(), None, "a row is missing");
}
