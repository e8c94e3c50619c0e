//! Marks of fences as a table, as JSON.

use super::clean;
use super::table::columns;
use serde_json::{Value, json};
use tenure::{LeaseName, Mark};

const HEADINGS: [&str; 5] = ["RESOURCE", "LEASE", "MARK", "REFUSED", "LAST REFUSED"];

/// A table with a heading; one line where there is nothing.
pub(crate) fn table_of_marks(marks: &[Mark]) -> String {
    if marks.is_empty() {
        return "no fences\n".to_owned();
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(marks.iter().map(|mark| {
        [
            clean(mark.resource.as_str()),
            clean(mark.lease.as_ref().map_or("-", LeaseName::as_str)),
            mark.token.to_string(),
            mark.refused.to_string(),
            mark.last_refused
                .map_or_else(|| "-".to_owned(), |token| token.to_string()),
        ]
    }));
    columns(&lines)
}

/// One mark for programs.
pub(crate) fn json_of_mark(mark: &Mark) -> Value {
    json!({
        "resource": mark.resource.as_str(),
        "lease": mark.lease.as_ref().map(LeaseName::as_str),
        "mark": mark.token.number(),
        "refused": mark.refused,
        "last_refused": mark.last_refused.map(|token| token.number()),
    })
}
