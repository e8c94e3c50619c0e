//! That each law of the simulator catches something.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;
use tenure_sim::invariants::LAWS;

/// Laws that no planted bug of the table is caught as, and why.
const NO_ROW: [(&str, &str); 2] = [
    (
        "no-lost-update",
        "it is about the worker, which no row changes: `every_planted_flaw_breaks_the_law_that_it_is_about` has a flaw for it",
    ),
    (
        "one-believer",
        "whoever believes too long is found by `belief-is-sound`, which is asked first",
    ),
];

/// A law that is asked with the wrong arguments, at the wrong moment, or not on every path, catches nothing.
#[test]
fn every_law_is_the_catcher_of_a_planted_bug_or_says_why_not() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants/TABLE.md");
    let table = std::fs::read_to_string(table).unwrap();
    let caught_as: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.split(" | ").nth(5))
        .map(str::trim)
        .collect();
    for law in LAWS {
        let is_excused = NO_ROW.iter().any(|(name, _)| *name == law.name);
        assert_ne!(caught_as.contains(law.name), is_excused, "{}", law.name);
    }
}
