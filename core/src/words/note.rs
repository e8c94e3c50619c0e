use std::fmt;
use std::sync::Arc;

/// Free text that a holder leaves in its record for the people who look: host, process id, version.
///
/// At most 1,024 bytes of UTF-8. It never decides anything, and no place for secrets: everyone
/// who may read the store reads it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Note(Arc<str>);

/// Longest note, in bytes.
const NOTE_BYTES_MAX: usize = 1024;

/// A note was longer than 1,024 bytes.
///
/// Effect on authority: none; nothing was started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NoteTooLong {
    /// Bytes in the note.
    pub bytes: usize,
}

impl fmt::Display for NoteTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the note has {} bytes; at most {NOTE_BYTES_MAX} are allowed",
            self.bytes
        )
    }
}

impl std::error::Error for NoteTooLong {}

impl Note {
    /// A note with this text.
    ///
    /// # Errors
    /// [`NoteTooLong`] over 1,024 bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, NoteTooLong> {
        let text = text.into();
        if text.len() > NOTE_BYTES_MAX {
            return Err(NoteTooLong { bytes: text.len() });
        }
        Ok(Self(text.into()))
    }

    /// A note with as much of this text as fits, however long it is: of what a record holds, which anybody
    /// may have written.
    #[must_use]
    pub fn beginning_of(text: &str) -> Self {
        let mut ends = (0..=text.len().min(NOTE_BYTES_MAX)).rev();
        let end = ends.find(|end| text.is_char_boundary(*end));
        Self(text[..end.unwrap_or_default()].into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_is_cut_between_characters() {
        for (text, kept) in [
            (String::new(), 0),
            ("x".repeat(NOTE_BYTES_MAX), NOTE_BYTES_MAX),
            ("x".repeat(NOTE_BYTES_MAX + 1), NOTE_BYTES_MAX),
            ("€".repeat(NOTE_BYTES_MAX), NOTE_BYTES_MAX / 3 * 3),
            ("x".repeat(10_000_000), NOTE_BYTES_MAX),
        ] {
            assert_eq!(Note::beginning_of(&text).as_str(), &text[..kept]);
        }
    }
}
