//! The table of the planted bugs, for people.

use crate::{Error, Outcome, Place, Row, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where the table stands, from the root of the workspace.
pub const TABLE: &str = "sim/mutants/TABLE.md";

const HEAD: &str = "# Planted bugs

Written by `cargo run -p tenure-sim --release -- mutants --write`. Each bug is planted in a copy of the sources; the
simulator and the model then look for it, with one thread and 60 s each. Rows are those of the failure catalogue in
the project's research; G-numbers are those of [GUARANTEES.md](../../GUARANTEES.md). Times are those of the last run, on
the machine that [VERIFICATION.md](../../VERIFICATION.md) names.

| planted bug | why it is one | catalogue | breaks | caught by | as | seconds | file |
|---|---|---|---|---|---|---|---|
";

/// How many of these bugs are planted where, in words.
#[must_use]
pub fn places<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut counts = BTreeMap::<Place, usize>::new();
    for row in rows {
        *counts.entry(row.place()).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(place, count)| format!("{count} in the {place}"))
        .collect();
    counts.join(", ")
}

/// The table in Markdown.
#[must_use]
pub fn table(verdicts: &[Verdict]) -> String {
    let mut text = HEAD.to_owned();
    for verdict in verdicts {
        let row = verdict.row;
        let catalogue: Vec<String> = row.catalogue.iter().map(u8::to_string).collect();
        let mut files: Vec<String> = row.edits.iter().map(|edit| format!("`{}`", edit.file)).collect();
        files.dedup();
        let (by, invariant, seconds) = match &verdict.outcome {
            Outcome::Caught {
                by,
                seconds,
                invariant,
                ..
            } => (
                by.to_string(),
                invariant.as_str(),
                format!("{:.1}", seconds.as_secs_f64()),
            ),
            Outcome::Survived => ("**nobody**".to_owned(), "", String::new()),
            Outcome::Failed { by, why } => (format!("**error of the {by}**"), why.as_str(), String::new()),
        };
        writeln!(
            text,
            "| {} | {} | {} | {} | {by} | {} | {seconds} | {} |",
            row.name,
            row.why,
            catalogue.join(", "),
            row.guarantee,
            invariant.replace('|', "\\|"),
            files.join(", ")
        )
        .expect("a string takes all");
    }
    let caught = verdicts
        .iter()
        .filter(|verdict| matches!(verdict.outcome, Outcome::Caught { .. }))
        .count();
    let places = places(verdicts.iter().map(|verdict| verdict.row));
    writeln!(text, "\n{caught} of {} caught: {places}.", verdicts.len()).expect("a string takes all");
    text
}

/// Writes the table to its place below the root of the workspace.
///
/// # Errors
/// [`Error::System`].
pub fn write_table(workspace: &Path, verdicts: &[Verdict]) -> Result<(), Error> {
    let path = workspace.join(TABLE);
    std::fs::write(&path, table(verdicts)).map_err(|error| Error::system(&path, &error))
}
