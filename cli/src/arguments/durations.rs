//! Durations as people write them.

use std::time::Duration;

/// Reads `30s`, `500ms`, `1m 30s`.
///
/// # Errors
/// What is wrong, and how to write it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 30s, 500ms or 1m30s"))
}

/// The same, and some.
pub(crate) fn some_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0; write it like 30s".to_owned()),
        some => Ok(some),
    }
}
