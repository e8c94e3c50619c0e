//! Names that no two have: of the members of a quorum, and of stores.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Digits of an id.
const DIGITS: usize = 32;

/// What something is called wherever it is met.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Id(String);

impl Id {
    /// One that nothing else has.
    pub(crate) fn any() -> Self {
        let half = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", half(), half()))
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Id;

    #[test]
    fn two_ids_are_not_alike() {
        assert_ne!(Id::any(), Id::any());
        assert!(Id::read(&Id::any().to_string()).is_some());
    }
}
