//! Texts and durations as people can read them.

use std::time::Duration;

/// `text` without control characters: what a record holds must not steer the terminal that shows it.
pub(crate) fn clean(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|character| {
            let escaped: Box<dyn Iterator<Item = char>> = if character.is_control() {
                Box::new(character.escape_default())
            } else {
                Box::new(std::iter::once(character))
            };
            escaped
        })
        .collect()
}

/// What was given for something else than a store, for people: not a URL, which may hold a password.
pub(crate) fn unless_url(text: &str) -> String {
    match text.contains("://") {
        true => "(not shown: this looks like a URL; use --store for one)".to_owned(),
        false => clean(text),
    }
}

/// A duration with as many digits as matter.
pub(crate) fn short(duration: Duration) -> String {
    let step = match duration {
        duration if duration >= Duration::from_secs(10) => 1_000_000_000,
        duration if duration >= Duration::from_secs(1) => 100_000_000,
        duration if duration >= Duration::from_millis(1) => 1_000_000,
        _ => 1_000,
    };
    let nanoseconds = duration.as_nanos() / step * step;
    let rounded = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
    if rounded < Duration::from_secs(60) {
        format!("{rounded:?}")
    } else {
        humantime::format_duration(rounded).to_string()
    }
}

/// Whole milliseconds for a program.
pub(crate) fn in_json(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(clean("größer"), "größer");
    }

    #[test]
    fn durations_show_the_digits_that_matter() {
        for (nanoseconds, shown) in [
            (12_345, "12µs"),
            (12_345_678, "12ms"),
            (2_345_678_901, "2.3s"),
            (29_987_654_321, "29s"),
            (3_725_000_000_001, "1h 2m 5s"),
        ] {
            assert_eq!(short(Duration::from_nanos(nanoseconds)), shown);
        }
    }
}
