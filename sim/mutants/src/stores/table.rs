//! The table of the wrong statements, for people.

use super::{StoreOutcome, StoreVerdict};
use crate::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where the table stands, from the root of the workspace.
pub const STORES_TABLE: &str = "sim/mutants/STORES.md";

const HEAD: &str = "# Wrong statements of the stores

Written by `cargo run --locked -p tenure-sim --release -- stores --write`. Each is planted in a copy, in the store's own SQL, Lua, BSON
or compare, and nothing else is changed; then tests of that store look for it on its real server, which pass without it. The seconds are
those of all tests that were to look, beside whatever else the machine did. G-numbers and the others are those of
[GUARANTEES.md](../../GUARANTEES.md).
";

/// How many tests are named for one bug.
const TESTS_SHOWN: usize = 2;

/// A section of the table for each store, in Markdown.
#[must_use]
pub fn stores_table(verdicts: &[StoreVerdict]) -> String {
    let sections: Vec<String> = sections(verdicts).into_values().collect();
    format!("{HEAD}{}", sections.concat())
}

/// Writes the sections of the stores that were tried to its place below the root of the workspace; those of others stay.
///
/// # Errors
/// [`Error::System`].
pub fn write_stores_table(workspace: &Path, verdicts: &[StoreVerdict]) -> Result<(), Error> {
    let path = workspace.join(STORES_TABLE);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let of_before = before.split("\n## ").skip(1).filter_map(|section| {
        let (store, rest) = section.split_once('\n')?;
        Some((store.to_owned(), format!("\n## {store}\n{}\n", rest.trim_end())))
    });
    let mut all: BTreeMap<String, String> = of_before.collect();
    all.extend(sections(verdicts));
    let all: Vec<String> = all.into_values().collect();
    std::fs::write(&path, format!("{HEAD}{}", all.concat())).map_err(|error| Error::system(&path, &error))
}

fn sections(verdicts: &[StoreVerdict]) -> BTreeMap<String, String> {
    let mut of_store: BTreeMap<&str, Vec<&StoreVerdict>> = BTreeMap::new();
    for verdict in verdicts {
        of_store.entry(verdict.row.store).or_default().push(verdict);
    }
    let sections = of_store.into_iter();
    sections
        .map(|(store, verdicts)| (store.to_owned(), section(store, &verdicts)))
        .collect()
}

fn section(store: &str, verdicts: &[&StoreVerdict]) -> String {
    let mut text = format!(
        "\n## {store}\n\n| wrong | breaks | file | caught by | tests that fail | seconds |\n|---|---|---|---|---|---|\n"
    );
    for StoreVerdict { row, outcome } in verdicts {
        let (by, count, seconds) = match outcome {
            StoreOutcome::Caught { by, seconds } => {
                let shown: Vec<String> = by
                    .iter()
                    .take(TESTS_SHOWN)
                    .map(|test| format!("`{test}`"))
                    .collect();
                let (count, seconds) = (by.len().to_string(), format!("{:.0}", seconds.as_secs_f64()));
                (shown.join(", "), count, seconds)
            }
            StoreOutcome::Survived => ("**nobody**".to_owned(), String::new(), String::new()),
            StoreOutcome::DoesNotCompile { .. } => {
                ("**does not compile**".to_owned(), String::new(), String::new())
            }
            StoreOutcome::TimeUp => ("**took too long**".to_owned(), String::new(), String::new()),
            StoreOutcome::Failed { why } => (
                format!("**error**: {}", why.replace('|', "\\|")),
                String::new(),
                String::new(),
            ),
        };
        writeln!(
            text,
            "| {} | {} | `{}` | {by} | {count} | {seconds} |",
            row.name, row.guarantee, row.file
        )
        .expect("a string takes all");
    }
    let is_caught = |verdict: &&&StoreVerdict| matches!(verdict.outcome, StoreOutcome::Caught { .. });
    let caught = verdicts.iter().filter(is_caught).count();
    writeln!(text, "\n{caught} of {} caught.", verdicts.len()).expect("a string takes all");
    text
}
