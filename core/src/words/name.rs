use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name of a lease or a resource, in bytes of UTF-8. MongoDB, etcd and Kubernetes all take more or
/// map more; a limit that every store keeps means that a name can move between stores.
const NAME_BYTES_MAX: usize = 255;

/// Longest candidate id, in bytes of UTF-8: a host name has at most 253.
const CANDIDATE_BYTES_MAX: usize = 253;

/// Why a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NameFault {
    /// The text is empty.
    Empty,
    /// The text has more bytes than allowed.
    TooLong {
        /// Bytes in the text.
        bytes: usize,
        /// Bytes allowed.
        bytes_max: usize,
    },
    /// A control character stands at this byte offset.
    ControlCharacter {
        /// Byte offset of the character.
        at: usize,
    },
    /// White space at the beginning or the end: two names that look alike must be alike.
    OuterWhiteSpace,
    /// A part between slashes is empty, `.` or `..`: stores that are file trees would give it a meaning.
    PathTraversal,
    /// It has a slash and is to be one part of a name.
    Slash,
}

/// A text that cannot be a name, and why.
///
/// Effect on authority: none; nothing was started.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NameError {
    /// What the text was to be: `lease name`, `candidate id`, `resource name`.
    pub what: &'static str,
    /// The beginning of the text, escaped, at most 40 characters; empty if it may be a URL, which may hold a
    /// password.
    pub shown: String,
    /// Why it is refused.
    pub fault: NameFault,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, shown, fault } = self;
        let quoted = match (shown.is_empty(), fault) {
            (true, _) => "(not shown: this looks like a URL; use --store for one)".to_owned(),
            (false, NameFault::TooLong { .. }) => format!("\"{shown}…\""),
            (false, _) => format!("\"{shown}\""),
        };
        match fault {
            NameFault::Empty => write!(f, "the {what} is empty; give it at least one character"),
            NameFault::TooLong { bytes, bytes_max } => {
                write!(
                    f,
                    "{what} {quoted} has {bytes} bytes; at most {bytes_max} are allowed"
                )
            }
            NameFault::ControlCharacter { at } => {
                write!(
                    f,
                    "{what} {quoted} has a control character at byte {at}; use printable characters"
                )
            }
            NameFault::OuterWhiteSpace => {
                write!(f, "{what} {quoted} begins or ends with white space; remove it")
            }
            NameFault::Slash => write!(f, "{what} {quoted} has a slash; leave it out"),
            NameFault::PathTraversal if shown.starts_with('/') => {
                write!(
                    f,
                    "{what} {quoted} begins with a slash; leave it out, a name is no path"
                )
            }
            NameFault::PathTraversal => write!(
                f,
                "{what} {quoted} has an empty, \".\" or \"..\" part between slashes; name every part"
            ),
        }
    }
}

impl std::error::Error for NameError {}

fn check(what: &'static str, bytes_max: usize, text: &str) -> Result<(), NameError> {
    let fault = if text.is_empty() {
        NameFault::Empty
    } else if text.len() > bytes_max {
        NameFault::TooLong {
            bytes: text.len(),
            bytes_max,
        }
    } else if let Some((at, _)) = text.char_indices().find(|(_, character)| character.is_control()) {
        NameFault::ControlCharacter { at }
    } else if text.trim() != text {
        NameFault::OuterWhiteSpace
    } else if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        NameFault::PathTraversal
    } else {
        return Ok(());
    };
    // Somebody who gives a URL in the place of a name gives its password with it.
    let shown = match text.contains("://") || text.contains('@') {
        true => String::new(),
        false => text.chars().take(40).flat_map(char::escape_debug).collect(),
    };
    Err(NameError { what, shown, fault })
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $type:ident, $what:literal, $bytes_max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks `text`.
            ///
            /// # Errors
            /// [`NameError`]: empty, too long, a control character, outer white space, or an empty, `.` or
            /// `..` part between slashes. Nothing was started.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let text = text.as_ref();
                check($what, $bytes_max, text)?;
                Ok(Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = NameError;
            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
    };
}

checked_text!(
    /// The name of a lease: what exactly one process may hold.
    ///
    /// 1 ..= 255 bytes of UTF-8, no control characters, no outer white space; slashes divide it into parts,
    /// none of which is empty, `.` or `..`.
    LeaseName, "lease name", NAME_BYTES_MAX
);
checked_text!(
    /// The label of a candidate, for people: a host name, a pod name. 1 ..= 253 bytes, else as [`LeaseName`].
    CandidateId, "candidate id", CANDIDATE_BYTES_MAX
);
checked_text!(
    /// The name of what a fence protects: a ledger, a table, a bucket. As [`LeaseName`].
    ResourceName, "resource name", NAME_BYTES_MAX
);
