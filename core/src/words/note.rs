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
