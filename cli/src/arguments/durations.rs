//! Durations as people write them.

use std::time::Duration;

/// Reads `30s`, `500ms`, `1m 30s`.
///
/// # Errors
/// What is wrong, and how to write it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 30s, 500ms or 1m30s"))
}

/// The same, and as flock(1) has it: a bare number is seconds, such as 5 or 0.5.
///
/// # Errors
/// What is wrong, and how to write it.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    // Neither a sign nor an exponent, which Rust's own numbers may have.
    match text.parse().ok().filter(|_| text.bytes().all(is_digit)) {
        Some(number) => Duration::try_from_secs_f64(number).map_err(|error| error.to_string()),
        None => duration(text),
    }
}

/// The same, and some.
pub(crate) fn some_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0; write it like 30s".to_owned()),
        some => Ok(some),
    }
}
