use crate::{LeaseName, ResourceName};
use std::fmt;

/// A place in the order of the names: behind this key, be it the name of a lease or a resource, or what
/// another program has left among them.
///
/// Where a page ends and the next begins. Ordered as names are, by their bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cursor(Box<[u8]>);

impl Cursor {
    /// Behind this key.
    #[must_use]
    pub fn behind(key: impl AsRef<[u8]>) -> Self {
        Self(key.as_ref().into())
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as text, for stores whose keys are. Where another store has made it and it is none: up to
    /// where it ceases to be, so that what is listed may repeat, and nothing is passed over.
    #[must_use]
    pub fn as_text(&self) -> &str {
        match std::str::from_utf8(&self.0) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&self.0[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl From<&LeaseName> for Cursor {
    fn from(name: &LeaseName) -> Self {
        Self::behind(name.as_str())
    }
}

impl From<&ResourceName> for Cursor {
    fn from(name: &ResourceName) -> Self {
        Self::behind(name.as_str())
    }
}

/// The key for people, escaped.
impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0).escape_debug())
    }
}
