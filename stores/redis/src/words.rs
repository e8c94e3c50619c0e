//! Words of a command.

use std::fmt::Display;
use std::io::Write as _;

/// Words one behind the other: a request is made of a dozen, and each by itself would be memory of its own.
#[derive(Clone, Default, Debug)]
pub(crate) struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    pub(crate) fn push(&mut self, word: impl Display) {
        write!(self.bytes, "{word}").expect("memory refuses nothing that is written to it");
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn push_bytes(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How long they are together.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn words_come_back_as_they_went_in() {
        let mut words = Words::default();
        assert_eq!((words.len(), words.iter().count()), (0, 0));
        words.push("a b");
        words.push("");
        words.push_bytes(b"\xff\0");
        words.push(7);
        let back: Vec<&[u8]> = words.iter().collect();
        assert_eq!(back, [&b"a b"[..], b"", b"\xff\0", b"7"]);
        assert_eq!((words.len(), words.length()), (4, 6));
    }
}
