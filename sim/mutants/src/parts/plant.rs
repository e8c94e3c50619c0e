//! The copy in which one bug at a time is planted; the shipped sources are only read.

use super::{Part, PartRow};
use crate::copy::{sources, write_changed};
use crate::rewrite::occurrences;
use crate::{Error, manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the copy and what is built of it stand, from the root of the workspace.
const PLACE: &str = "target/planted";

/// Checks that no two rows of a part have one name, and that the words of every row are found exactly once.
///
/// `read` gives the text of a file of the workspace.
///
/// # Errors
/// Every row that is out of date or shares a name: all of them, not the first only.
pub fn check_part_rows(
    rows: &'static [PartRow],
    read: impl Fn(&str) -> Option<String>,
) -> Result<(), Vec<Error>> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for row in rows {
        if !names.insert((row.part.name, row.name)) {
            errors.push(Error::SameName(row.name));
        }
        // A file that is gone has none of the words.
        let text = read(&row.path()).unwrap_or_default();
        errors.extend(planted(row, &text).err());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The text of the row's file with the bug.
fn planted(row: &'static PartRow, text: &str) -> Result<String, Error> {
    let mut planted = text.to_owned();
    for [original, with_the_bug] in row.edits {
        let spans = occurrences(&planted, original);
        let [span] = &spans[..] else {
            return Err(Error::OutOfDate {
                row: row.name,
                file: row.file,
                found: spans.len(),
            });
        };
        planted.replace_range(span.clone(), with_the_bug);
    }
    Ok(planted)
}

/// A copy of the parts, and of all that they and their tests need.
pub(super) struct PartCopy {
    /// The root of the copied workspace.
    pub(super) root: PathBuf,
    /// Where it is built: kept from one row to the next, so that only what has changed is built anew.
    pub(super) target: PathBuf,
    /// The parts.
    pub(super) parts: BTreeSet<&'static Part>,
    /// The shipped files, by their path from the root.
    files: BTreeMap<String, Vec<u8>>,
}

impl PartCopy {
    /// Makes the copy, or brings the one of the last time up to date, without a bug.
    pub(super) fn new(workspace: &Path, rows: &'static [PartRow]) -> Result<Self, Error> {
        let parts: BTreeSet<&'static Part> = rows.iter().map(|row| row.part).collect();
        let mut crates = BTreeSet::new();
        for part in &parts {
            crates.extend(manifest::crates_needed(workspace, part.folder)?);
        }
        let copy = Self {
            root: workspace.join(PLACE).join("workspace"),
            target: workspace.join(PLACE).join("target"),
            parts,
            files: sources(workspace, &crates)?,
        };
        copy.clean()?;
        Ok(copy)
    }

    /// Brings the copy to what is shipped.
    pub(super) fn clean(&self) -> Result<(), Error> {
        write_changed(&self.root, &self.files)
    }

    /// Brings the copy to what is shipped, but for this bug.
    pub(super) fn plant(&self, row: &'static PartRow) -> Result<(), Error> {
        let mut files = self.files.clone();
        let file = row.path();
        let content = files.get_mut(&file).ok_or(Error::NoCrate {
            row: row.name,
            file: row.file,
        })?;
        *content = planted(row, &String::from_utf8_lossy(content))?.into_bytes();
        write_changed(&self.root, &files)
    }
}
