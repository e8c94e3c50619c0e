//! Planting: from the shipped text of a file and the rows, the text of the copy.

use crate::{Edit, Error, Row, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

/// The bugs of one place: rows that replace the very same words.
struct Place {
    file: &'static str,
    span: Range<usize>,
    shape: Shape,
    /// Number, name and planted code of each.
    planted: Vec<(usize, &'static str, &'static str)>,
}

/// Checks that every name is unique, and that the words of every row are found exactly once, alone.
///
/// `read` gives the text of a file of the workspace.
///
/// # Errors
/// Every row that is out of date, shares a name or overlaps another: all of them, not the first only.
pub fn check_rows(rows: &'static [Row], read: impl Fn(&str) -> Option<String>) -> Result<(), Vec<Error>> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for row in rows {
        if !names.insert(row.name) {
            errors.push(Error::SameName(row.name));
        }
    }
    let files: BTreeSet<&'static str> = edits(rows).map(|(_, _, edit)| edit.file).collect();
    for file in files {
        // A file that is gone has none of the words.
        let text = read(file).unwrap_or_default();
        if let Err(mut found) = places(rows, file, &text) {
            errors.append(&mut found);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The text of `file` with every bug of `rows` planted behind its switch.
///
/// # Errors
/// As [`check_rows`], for this file.
pub fn rewrite(rows: &'static [Row], file: &str, text: &str) -> Result<String, Vec<Error>> {
    let mut rewritten = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for place in places(rows, file, text)? {
        rewritten.push_str(&text[done..place.span.start]);
        rewritten.push_str(&choice(&place, &text[place.span.clone()]));
        done = place.span.end;
    }
    rewritten.push_str(&text[done..]);
    Ok(rewritten)
}

/// Every edit with the number of its row, counted from 1.
fn edits(rows: &'static [Row]) -> impl Iterator<Item = (usize, &'static Row, &'static Edit)> {
    rows.iter()
        .enumerate()
        .flat_map(|(index, row)| row.edits.iter().map(move |edit| (index + 1, row, edit)))
}

/// The places of a file that are rewritten, in their order.
fn places(rows: &'static [Row], file: &str, text: &str) -> Result<Vec<Place>, Vec<Error>> {
    let mut errors = Vec::new();
    let mut found: BTreeMap<(usize, usize), Place> = BTreeMap::new();
    for (number, row, edit) in edits(rows).filter(|(_, _, edit)| edit.file == file) {
        let spans = occurrences(text, edit.original);
        let [span] = &spans[..] else {
            errors.push(Error::OutOfDate {
                row: row.name,
                file: edit.file,
                found: spans.len(),
            });
            continue;
        };
        let place = found.entry((span.start, span.end)).or_insert_with(|| Place {
            file: edit.file,
            span: span.clone(),
            shape: edit.shape,
            planted: Vec::new(),
        });
        if place.shape != edit.shape {
            let rows = [place.planted[0].1, row.name];
            errors.push(Error::ShapesDiffer {
                rows,
                file: edit.file,
            });
        }
        place.planted.push((number, row.name, edit.planted));
    }
    let places: Vec<Place> = found.into_values().collect();
    for pair in places.windows(2) {
        if pair[1].span.start < pair[0].span.end {
            let rows = [pair[0].planted[0].1, pair[1].planted[0].1];
            let file = pair[0].file;
            errors.push(Error::Overlap { rows, file });
        }
    }
    if errors.is_empty() {
        Ok(places)
    } else {
        Err(errors)
    }
}

/// `if switched on { planted } else if … else { original }`.
fn choice(place: &Place, original: &str) -> String {
    let mut code = String::new();
    for (number, _, planted) in &place.planted {
        write!(code, "if crate::planted::is({number}) {{ {planted}\n}} else ").expect("a string takes all");
    }
    // On a line of its own: the words may end with a comment.
    write!(code, "{{ {original}\n}}").expect("a string takes all");
    match place.shape {
        Shape::Expression => format!("({code})"),
        Shape::Statement => code,
    }
}

/// Where `snippet` stands in `text`: word by word, with any white space between the words.
pub(crate) fn occurrences(text: &str, snippet: &str) -> Vec<Range<usize>> {
    let mut words = snippet.split_whitespace();
    let Some(first) = words.next() else {
        return Vec::new();
    };
    let rest: Vec<&str> = words.collect();
    text.match_indices(first)
        .filter_map(|(start, _)| {
            let mut end = start + first.len();
            for word in &rest {
                let after = text[end..].trim_start();
                let gap = text.len() - end - after.len();
                if gap == 0 || !after.starts_with(word) {
                    return None;
                }
                end += gap + word.len();
            }
            Some(start..end)
        })
        .collect()
}
