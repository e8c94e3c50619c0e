//! Texts and durations as people can read them.

use std::borrow::Cow;
use std::time::Duration;

/// `text` without what steers a terminal: what a record holds must not steer the one that shows it.
pub(crate) fn clean(text: &str) -> String {
    if !text.chars().any(steers) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|character| {
            let escaped: Box<dyn Iterator<Item = char>> = if steers(character) {
                Box::new(character.escape_default())
            } else {
                Box::new(std::iter::once(character))
            };
            escaped
        })
        .collect()
}

/// Control characters, and what ends a line or sets the direction of all that follows: a holder's id could
/// show its token back to front. Letters that are written from right to left are none of these.
fn steers(character: char) -> bool {
    let marks_direction = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let sets_direction = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || marks_direction || sets_direction
}

/// JSON that means the same and steers no terminal: it may hold as they are all control characters but those
/// of ASCII.
pub(crate) fn inert(json: &str) -> Cow<'_, str> {
    let may_stay = |character: char| character < '\u{7f}' || !steers(character);
    if json.chars().all(may_stay) {
        return Cow::Borrowed(json);
    }
    let mut written = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if may_stay(character) {
            written.push(character);
        } else {
            // None of them stands outside of a text, and none has more than four digits.
            written.push_str(&format!("\\u{:04x}", u32::from(character)));
        }
    }
    Cow::Owned(written)
}

/// The same as [`clean`], as a line.
pub(crate) fn line(text: &str) -> String {
    format!("{}\n", clean(text))
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
        Duration::ZERO => return "0s".to_owned(),
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
    fn json_means_the_same_whatever_was_escaped() {
        let text = "a\u{7f}\u{200e}b\u{9b}2Jc\u{202e}d\u{2069}e\u{1b}f\\u0041größer漢字";
        let json = serde_json::to_string(text).unwrap();
        let inert = inert(&json);
        assert!(!inert.contains(steers), "{inert}");
        assert_eq!(serde_json::from_str::<String>(&inert).unwrap(), text);
    }

    #[test]
    fn a_name_cannot_turn_what_stands_around_it_back_to_front() {
        assert_eq!(
            clean("a\u{202e}b\u{2066}c\u{2028}d\u{200f}e\u{61c}f"),
            "a\\u{202e}b\\u{2066}c\\u{2028}d\\u{200f}e\\u{61c}f"
        );
        // They are written from right to left by themselves.
        for name in ["שלום", "سلام", "नमस्ते", "漢字"] {
            assert_eq!(clean(name), name);
        }
    }

    #[test]
    fn durations_show_the_digits_that_matter() {
        for (nanoseconds, shown) in [
            (0, "0s"),
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
