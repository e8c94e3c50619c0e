//! The table of what is planted in the parts, for people.

use super::{PartOutcome, PartRow, PartVerdict};
use crate::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where the table stands, from the root of the workspace.
pub const PARTS_TABLE: &str = "sim/mutants/PARTS.md";

const HEAD: &str = "# Wrong lines of the stores, the fences and the library

Written by `cargo run --locked -p tenure-sim --release -- parts --write`. Each is planted in a copy: in the SQL, Lua, BSON or compare of
a store, in how it connects and what it makes sure of first, in a fence (`watermark`, `http`), in the library around the engine
(`driver`), or in how the engine gives leases back (`core`); nothing else is changed. Then tests of that crate look for it, those of a
store on its real server, which pass without it. The seconds are those of all tests that were to look, beside the build of the next.
G-numbers and the others are those of [GUARANTEES.md](../../GUARANTEES.md).
";

const SECTION: &str =
    "\n| wrong | breaks | file | caught by | tests that fail | seconds |\n|---|---|---|---|---|---|\n";

/// How many tests are named for one bug.
const TESTS_SHOWN: usize = 2;

/// How a line begins and ends in which no test is named.
const NO_TEST: &str = "| **";

/// The table in Markdown: of these rows those that were tried, and as they stand in the table of before those
/// that were not.
#[must_use]
pub fn parts_table(rows: &[PartRow], verdicts: &[PartVerdict], before: &str) -> String {
    let mut lines = lines_of(before);
    for verdict in verdicts {
        let key = (verdict.row.part.name.to_owned(), verdict.row.name.to_owned());
        lines.insert(key, line(verdict));
    }
    let mut sections = BTreeMap::<&str, Vec<&str>>::new();
    for row in rows {
        let line = lines.get(&(row.part.name.to_owned(), row.name.to_owned()));
        if let Some(line) = line {
            sections.entry(row.part.name).or_default().push(line);
        }
    }
    let mut text = HEAD.to_owned();
    for (part, lines) in sections {
        let caught = lines.iter().filter(|line| !line.contains(NO_TEST)).count();
        write!(text, "\n## {part}\n{SECTION}{}", lines.concat()).expect("a string takes all");
        writeln!(text, "\n{caught} of {} caught.", lines.len()).expect("a string takes all");
    }
    text
}

/// Writes the table to its place below the root of the workspace.
///
/// # Errors
/// [`Error::System`].
pub fn write_parts_table(workspace: &Path, rows: &[PartRow], verdicts: &[PartVerdict]) -> Result<(), Error> {
    let path = workspace.join(PARTS_TABLE);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let table = parts_table(rows, verdicts, &before);
    std::fs::write(&path, table).map_err(|error| Error::system(&path, &error))
}

/// The lines of a table, by the part and the name of the row.
fn lines_of(table: &str) -> BTreeMap<(String, String), String> {
    let mut lines = BTreeMap::new();
    for section in table.split("\n## ").skip(1) {
        let (part, rest) = section.split_once('\n').unwrap_or((section, ""));
        for line in rest.lines() {
            if let Some((name, _)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | ")) {
                lines.insert((part.to_owned(), name.to_owned()), format!("{line}\n"));
            }
        }
    }
    lines
}

fn line(PartVerdict { row, outcome }: &PartVerdict) -> String {
    let nobody = |what: &str| (format!("**{what}**"), String::new(), String::new());
    let (by, count, seconds) = match outcome {
        PartOutcome::Caught { by, seconds } => {
            let shown = by.iter().take(TESTS_SHOWN).map(|test| format!("`{test}`"));
            let shown: Vec<String> = shown.collect();
            let seconds = format!("{:.0}", seconds.as_secs_f64());
            (shown.join(", "), by.len().to_string(), seconds)
        }
        PartOutcome::Survived => nobody("nobody"),
        PartOutcome::DoesNotCompile { .. } => nobody("does not compile"),
        PartOutcome::TimeUp => nobody("took too long"),
        PartOutcome::Failed { .. } => nobody("error"),
    };
    let (name, guarantee, file) = (row.name, row.guarantee, row.file);
    format!("| {name} | {guarantee} | `{file}` | {by} | {count} | {seconds} |\n")
}
