//! The table of the wrong statements, for people.

use super::{StoreOutcome, StoreRow, StoreVerdict};
use crate::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where the table stands, from the root of the workspace.
pub const STORES_TABLE: &str = "sim/mutants/STORES.md";

const HEAD: &str = "# Wrong statements of the stores

Written by `cargo run --locked -p tenure-sim --release -- stores --write`. Each is planted in a copy, in the store's own SQL, Lua, BSON
or compare, and nothing else is changed; then tests of that store look for it on its real server, which pass without it. The seconds are
those of all tests that were to look, beside the build of the next. G-numbers and the others are those of
[GUARANTEES.md](../../GUARANTEES.md).
";

const SECTION: &str =
    "\n| wrong | breaks | file | caught by | tests that fail | seconds |\n|---|---|---|---|---|---|\n";

/// How many tests are named for one bug.
const TESTS_SHOWN: usize = 2;

/// How a line begins and ends in which no test is named.
const NO_TEST: &str = "| **";

/// The table in Markdown: of these rows those that were tried, and as they stand in the table of before those that were not.
#[must_use]
pub fn stores_table(rows: &[StoreRow], verdicts: &[StoreVerdict], before: &str) -> String {
    let mut lines = lines_of(before);
    for verdict in verdicts {
        let key = (verdict.row.store.to_owned(), verdict.row.name.to_owned());
        lines.insert(key, line(verdict));
    }
    let mut sections = BTreeMap::<&str, Vec<&str>>::new();
    for row in rows {
        let line = lines.get(&(row.store.to_owned(), row.name.to_owned()));
        if let Some(line) = line {
            sections.entry(row.store).or_default().push(line);
        }
    }
    let mut text = HEAD.to_owned();
    for (store, lines) in sections {
        let caught = lines.iter().filter(|line| !line.contains(NO_TEST)).count();
        write!(text, "\n## {store}\n{SECTION}{}", lines.concat()).expect("a string takes all");
        writeln!(text, "\n{caught} of {} caught.", lines.len()).expect("a string takes all");
    }
    text
}

/// Writes the table to its place below the root of the workspace.
///
/// # Errors
/// [`Error::System`].
pub fn write_stores_table(
    workspace: &Path,
    rows: &[StoreRow],
    verdicts: &[StoreVerdict],
) -> Result<(), Error> {
    let path = workspace.join(STORES_TABLE);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let table = stores_table(rows, verdicts, &before);
    std::fs::write(&path, table).map_err(|error| Error::system(&path, &error))
}

/// The lines of a table, by the store and the name of the row.
fn lines_of(table: &str) -> BTreeMap<(String, String), String> {
    let mut lines = BTreeMap::new();
    for section in table.split("\n## ").skip(1) {
        let (store, rest) = section.split_once('\n').unwrap_or((section, ""));
        for line in rest.lines() {
            if let Some((name, _)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | ")) {
                lines.insert((store.to_owned(), name.to_owned()), format!("{line}\n"));
            }
        }
    }
    lines
}

fn line(StoreVerdict { row, outcome }: &StoreVerdict) -> String {
    let nobody = |what: &str| (format!("**{what}**"), String::new(), String::new());
    let (by, count, seconds) = match outcome {
        StoreOutcome::Caught { by, seconds } => {
            let shown = by.iter().take(TESTS_SHOWN).map(|test| format!("`{test}`"));
            let shown: Vec<String> = shown.collect();
            let seconds = format!("{:.0}", seconds.as_secs_f64());
            (shown.join(", "), by.len().to_string(), seconds)
        }
        StoreOutcome::Survived => nobody("nobody"),
        StoreOutcome::DoesNotCompile { .. } => nobody("does not compile"),
        StoreOutcome::TimeUp => nobody("took too long"),
        StoreOutcome::Failed { .. } => nobody("error"),
    };
    let (name, guarantee, file) = (row.name, row.guarantee, row.file);
    format!("| {name} | {guarantee} | `{file}` | {by} | {count} | {seconds} |\n")
}
