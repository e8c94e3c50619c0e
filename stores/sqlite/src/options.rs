//! How a store is opened, and how a URL says it.

use crate::SqliteStore;
use std::path::{Path, PathBuf};
use tenure_core::{Fault, StoreError};
use tenure_local::FileSystemTrust;

/// What to do when the file's directory does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MissingDirectory {
    /// An error that says so: a misspelt path must not become a second, empty store. The default.
    #[default]
    Refuse,
    /// It is made, with all above it, readable by this user alone (mode 0700). For a default path that no
    /// person typed.
    CreatePrivate,
}

/// How to open a [`SqliteStore`], or a [fence](Self::open_fence): made by [`SqliteStore::options`] or
/// [`SqliteOptions::from_url`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "options do nothing until opened"]
pub struct SqliteOptions {
    pub(crate) path: PathBuf,
    pub(crate) trust: FileSystemTrust,
    pub(crate) missing_directory: MissingDirectory,
}

impl SqliteOptions {
    /// Options for the file at `path`, all at their defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            trust: FileSystemTrust::default(),
            missing_directory: MissingDirectory::default(),
        }
    }

    /// Reads `sqlite:relative/path.db`, `sqlite:/absolute/path.db` or `sqlite:///absolute/path.db`, with
    /// `?filesystem=trusted` for [`FileSystemTrust::Trusted`]. `%3F` and the like stand for bytes.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: another scheme, no path, a host, an unknown option. Nothing was opened.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| {
            StoreError::not_applied(
                Fault::Invalid,
                format!(
                    "store URL {:?} {why}; write sqlite:relative/path.db or sqlite:/absolute/path.db",
                    without_secrets(url)
                ),
            )
        };
        let rest = url
            .strip_prefix("sqlite:")
            .ok_or_else(|| wrong("does not begin with sqlite:"))?;
        let (location, query) = rest
            .split_once('?')
            .map_or((rest, None), |(location, query)| (location, Some(query)));
        let path = match location.strip_prefix("//") {
            Some(absolute) if absolute.starts_with('/') => absolute,
            Some(_) => return Err(wrong("names a host, and an SQLite file has none")),
            None => location,
        };
        let path =
            percent_decoded(path).ok_or_else(|| wrong("has a % that two hexadecimal digits must follow"))?;
        if path.is_empty() {
            return Err(wrong("names no file"));
        }
        let mut options = Self::new(path);
        for option in query.into_iter().flat_map(|query| query.split('&')) {
            match option {
                "filesystem=trusted" => options.trust = FileSystemTrust::Trusted,
                "filesystem=local" => options.trust = FileSystemTrust::LocalOnly,
                _ => return Err(wrong("has an unknown option; filesystem=trusted is the only one")),
            }
        }
        Ok(options)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file systems are taken. Default: [`FileSystemTrust::LocalOnly`].
    pub fn trust(mut self, trust: FileSystemTrust) -> Self {
        self.trust = trust;
        self
    }

    /// What to do when the directory is missing. Default: [`MissingDirectory::Refuse`].
    pub fn missing_directory(mut self, what: MissingDirectory) -> Self {
        self.missing_directory = what;
        self
    }

    /// Opens the store: see [`SqliteStore::open`].
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(self)
    }
}

/// A URL as a message may show it. No URL of ours has a password, but a person may have mistaken the store:
/// what stands before an `@`, and the options, stay untold.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = match url.strip_prefix("sqlite:") {
        Some(rest) => ("sqlite:", rest),
        None => ("", url),
    };
    let told = match (rest.rfind('@'), rest.find('?')) {
        (None, None) => rest.to_owned(),
        (Some(at), None) => format!("…{}", &rest[at..]),
        (None, Some(query)) => format!("{}?…", &rest[..query]),
        (Some(at), Some(query)) if at < query => format!("…{}?…", &rest[at..query]),
        // Nobody can tell which of them divides: either side may be a password with the other in it.
        (Some(_), Some(_)) => "…".to_owned(),
    };
    if told.chars().nth(URL_CHARACTERS_MAX).is_some() {
        let beginning: String = told.chars().take(URL_CHARACTERS_MAX).collect();
        return format!("{scheme}{beginning}…");
    }
    format!("{scheme}{told}")
}

/// Longest part of a URL that a message shows, in characters: it may be a novel.
const URL_CHARACTERS_MAX: usize = 200;

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_url_names_a_path() {
        for (url, path) in [
            ("sqlite:leases.db", "leases.db"),
            ("sqlite:a/b.db", "a/b.db"),
            ("sqlite:/var/lib/b.db", "/var/lib/b.db"),
            ("sqlite:///var/lib/b.db", "/var/lib/b.db"),
            ("sqlite:///with%20space%3F.db", "/with space?.db"),
        ] {
            assert_eq!(
                SqliteOptions::from_url(url).unwrap().path,
                Path::new(path),
                "{url}"
            );
        }
        let trusted = SqliteOptions::from_url("sqlite:///x.db?filesystem=trusted").unwrap();
        assert_eq!(trusted.trust, FileSystemTrust::Trusted);
    }

    #[test]
    fn a_wrong_url_is_refused_with_the_way_out() {
        for url in [
            "",
            "postgres://x",
            "sqlite:",
            "sqlite://",
            "sqlite://host/x.db",
            "sqlite:///x.db?mode=ro",
            "sqlite:%zz",
            "sqlite:%+1",
            "sqlite:%",
        ] {
            let error = SqliteOptions::from_url(url).unwrap_err();
            assert_eq!(error.fault, Fault::Invalid, "{url}");
            assert!(
                error.message.contains("sqlite:/absolute/path.db"),
                "{}",
                error.message
            );
        }
    }

    #[test]
    fn a_refused_url_shows_no_password() {
        for url in [
            "sqlite://user:secret@host/x.db",
            "sqlite:user:secret@%zz",
            "sqlite:///x.db?key=secret",
            "sqlite:///x.db?key=sec@ret&secret",
            "mongodb://user:secret@host",
            "sqlite://user:sec?ret@secret@host/x.db",
        ] {
            let error = SqliteOptions::from_url(url).unwrap_err();
            assert!(!error.message.contains("sec"), "{}", error.message);
        }
    }
}
