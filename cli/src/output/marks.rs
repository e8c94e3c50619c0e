//! Marks of fences as a table, as JSON.

use super::clean;
use super::table::columns;
use serde_json::{Value, json};
use tenure::{LeaseName, ListedMark, Mark};

const HEADINGS: [&str; 5] = ["RESOURCE", "LEASE", "MARK", "REFUSED", "LAST REFUSED"];

/// A table with a heading; one line where there is nothing.
pub(crate) fn table_of_marks(marks: &[ListedMark]) -> String {
    if marks.is_empty() {
        return "no fences\n".to_owned();
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    let nothing = || "-".to_owned();
    lines.extend(marks.iter().map(|listed| match listed {
        ListedMark::Mark(mark) => [
            clean(mark.resource.as_str()),
            clean(mark.lease.as_ref().map_or("-", LeaseName::as_str)),
            match mark.bumped {
                true => format!("{} (bumped)", mark.token),
                false => mark.token.to_string(),
            },
            mark.refused.to_string(),
            mark.last_refused.map_or_else(nothing, |token| token.to_string()),
        ],
        // In the last column there is room for words.
        ListedMark::Unreadable { key, error } => [
            clean(key),
            nothing(),
            "unreadable".to_owned(),
            nothing(),
            clean(&error.message),
        ],
    }));
    columns(&lines)
}

/// One mark of a list for programs.
pub(crate) fn json_of_listed(listed: &ListedMark) -> Value {
    match listed {
        ListedMark::Mark(mark) => json_of_mark(mark),
        ListedMark::Unreadable { key, error } => json!({
            "resource": key,
            "lease": null,
            "mark": null,
            "bumped": null,
            "refused": null,
            "last_refused": null,
            "error": error.message,
        }),
    }
}

/// One mark for programs.
pub(crate) fn json_of_mark(mark: &Mark) -> Value {
    json!({
        "resource": mark.resource.as_str(),
        "lease": mark.lease.as_ref().map(LeaseName::as_str),
        "mark": mark.token.number(),
        "bumped": mark.bumped,
        "refused": mark.refused,
        "last_refused": mark.last_refused.map(|token| token.number()),
    })
}
