//! Which store, and how its URL may be passed on.

use crate::arguments::is_empty;
use crate::exit::{Code, Failure};
use crate::output::clean;
use std::path::{Path, PathBuf};
#[cfg(not(feature = "sqlite"))]
use tenure::contract::Fault;
use tenure::tooling::{SharedPurge, refuse_blank_ends};
use tenure::{Registry, SharedStore, StoreError};

/// Where the leases are.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// At a URL that somebody gave. May hold a password: never shown, and no `Debug`.
    Given(String),
    /// In the file that nobody named.
    Default(PathBuf),
}

impl Place {
    /// The place that was given, or the default one.
    ///
    /// # Errors
    /// None was given, and there is no default: no SQLite compiled in, or no home directory. Nor is there one
    /// where the variable is empty.
    pub(crate) fn find(given: Option<&str>) -> Result<Self, Failure> {
        if let Some(url) = given {
            refuse_blank_ends(url, "store")?;
            if let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.starts_with('/')) {
                let directory = std::env::current_dir().unwrap_or_default();
                is_utf8(&directory, &format!("sqlite:{path}"))?;
            }
            return Ok(Self::Given(url.to_owned()));
        }
        refuse_if_empty("TENURE_STORE", "the store of this user on this host")?;
        if !cfg!(feature = "sqlite") {
            return Err(Failure::new(
                Code::Configuration,
                "no store is named, and the default one, SQLite, is not compiled in; give --store URL",
            ));
        }
        let path = default_path()?;
        is_utf8(&path, "the default store")?;
        Ok(Self::Default(path))
    }

    /// The file that nobody named, where this is its URL, as a command that is run gets it.
    pub(crate) fn default_of(url: &str) -> Option<PathBuf> {
        default_path().ok().filter(|path| sqlite_url(path, "") == url)
    }

    /// Opens the store.
    ///
    /// # Errors
    /// What the store says. Nothing was started.
    pub(crate) async fn open(&self) -> Result<SharedStore, StoreError> {
        match self {
            Self::Given(url) => Registry::connect(url).await,
            Self::Default(path) => open_default(path),
        }
    }

    /// The file, where nobody has used it yet: a look must not leave one behind, under a name that is
    /// mistyped or with an owner who only looks. Of one that was given its folder is there: else opening it
    /// says what is missing.
    pub(crate) fn unused(&self) -> Option<PathBuf> {
        let path = match self {
            Self::Default(path) => path.clone(),
            Self::Given(url) => file_of(url).filter(|path| path.parent().is_some_and(Path::is_dir))?,
        };
        // One that may not be looked into is there, and opening it says why it may not.
        matches!(path.try_exists(), Ok(false)).then_some(path)
    }

    /// Opens the store for cleaning up.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn open_to_purge(&self) -> Result<SharedPurge, Failure> {
        let url = match self {
            Self::Given(url) => url.clone(),
            Self::Default(path) => sqlite_url(path, ""),
        };
        Ok(Registry::connect_to_purge(&url).await?)
    }

    /// The URL for a command that is run: it finds the same store from any directory, and holds no password
    /// unless `credentials` are to be shared.
    pub(crate) fn for_command(&self, credentials: Credentials) -> String {
        match self {
            Self::Default(path) => sqlite_url(path, ""),
            Self::Given(url) => match (url.strip_prefix("sqlite:"), credentials) {
                (Some(rest), _) => absolute(rest),
                (None, Credentials::Shared) => url.clone(),
                (None, Credentials::Withheld) => without_secrets(url),
            },
        }
    }
}

/// Refuses a variable that is there and empty, where a place is to be found by it: a secret that was not
/// filled in would stand for a store of this machine alone, on each of its hosts, and each would lead there.
///
/// # Errors
/// It is there and empty.
pub(crate) fn refuse_if_empty(variable: &str, default: &str) -> Result<(), Failure> {
    if !is_empty(variable.as_ref()) {
        return Ok(());
    }
    Err(Failure::new(
        Code::Usage,
        format!("{variable} is empty; set it, or unset it for {default}"),
    ))
}

/// Whether a command that is run gets the store's password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Credentials {
    /// In its environment.
    Shared,
    /// Not: an environment is inherited by every child, and printed by many a crash reporter.
    Withheld,
}

#[cfg(feature = "sqlite")]
fn open_default(path: &Path) -> Result<SharedStore, StoreError> {
    use tenure::sqlite::{MissingDirectory, SqliteOptions};
    let store = SqliteOptions::new(path)
        .missing_directory(MissingDirectory::CreatePrivate)
        .open()?;
    Ok(std::sync::Arc::new(store))
}

#[cfg(not(feature = "sqlite"))]
fn open_default(path: &Path) -> Result<SharedStore, StoreError> {
    let _ = path;
    Err(StoreError::not_applied(
        Fault::Unsupported,
        "SQLite is not compiled in",
    ))
}

/// The file of an SQLite store.
#[cfg(feature = "sqlite")]
fn file_of(url: &str) -> Option<PathBuf> {
    let options = tenure::sqlite::SqliteOptions::from_url(url).ok()?;
    std::path::absolute(options.path()).ok()
}

#[cfg(not(feature = "sqlite"))]
fn file_of(_url: &str) -> Option<PathBuf> {
    None
}

fn default_path() -> Result<PathBuf, Failure> {
    // A relative path would be another store in every directory; the XDG specification ignores it, too.
    let directory = |variable| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = if rustix::process::geteuid().is_root() && directory("XDG_STATE_HOME").is_none() {
        Some(PathBuf::from("/var/lib"))
    } else {
        directory("XDG_STATE_HOME").or_else(|| directory("HOME").map(|home| home.join(".local/state")))
    };
    state
        .map(|state| state.join("tenure").join("leases.db"))
        .ok_or_else(|| {
            Failure::new(
                Code::Configuration,
                "no store is named, and neither XDG_STATE_HOME nor HOME says where the default one is; give \
             --store sqlite:/PATH",
            )
        })
}

/// A URL is text: with a directory that is none, it would be that of another file.
fn is_utf8(directory: &Path, of: &str) -> Result<(), Failure> {
    if directory.to_str().is_some() {
        return Ok(());
    }
    Err(Failure::new(
        Code::Configuration,
        format!(
            "{of} would be in {}, which is not UTF-8 and cannot be written as a URL; give --store sqlite:/PATH",
            clean(&directory.to_string_lossy())
        ),
    ))
}

/// The URL of an SQLite file, from any directory.
fn absolute(rest: &str) -> String {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let query = if query.is_empty() {
        String::new()
    } else {
        format!("?{query}")
    };
    if path.starts_with('/') {
        return format!("sqlite:{path}{query}");
    }
    let directory = std::env::current_dir().unwrap_or_default();
    // The path is encoded already; the directory is not.
    format!("{}/{path}{query}", sqlite_url(&directory, ""))
}

fn sqlite_url(path: &Path, query: &str) -> String {
    let mut url = String::from("sqlite:");
    for character in path.to_string_lossy().chars() {
        match character {
            '%' => url.push_str("%25"),
            '?' => url.push_str("%3F"),
            '#' => url.push_str("%23"),
            other => url.push(other),
        }
    }
    url + query
}

/// A URL without its password and without options that hold secrets.
fn without_secrets(url: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(a, q)| (a, Some(q)));
    let mut kept = match address.split_once("://") {
        // The last @ ends the credentials: one in a badly encoded password must not leave a part of it.
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((credentials, host)) => {
                let user = match credentials.split_once(':') {
                    // A word alone is a token there.
                    _ if scheme.starts_with("nats") => "",
                    Some((user, _password)) => user,
                    None => credentials,
                };
                format!("{scheme}://{user}@{host}")
            }
            None => address.to_owned(),
        },
        None => address.to_owned(),
    };
    let harmless: Vec<&str> = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|option| {
            let key = option.split('=').next().unwrap_or_default().to_ascii_lowercase();
            // No store decodes a name, and a program that does would find a password by it.
            let is_encoded = key.contains('%');
            !(is_encoded
                || key.contains("password")
                || key.contains("properties")
                || key.contains("token")
                || option.contains('@'))
        })
        .collect();
    if !harmless.is_empty() {
        kept.push('?');
        kept.push_str(&harmless.join("&"));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_store_without_secrets() {
        for (given, passed_on) in [
            (
                "mongodb://h1,h2/db?replicaSet=rs",
                "mongodb://h1,h2/db?replicaSet=rs",
            ),
            ("mongodb://user:secret@h/db", "mongodb://user@h/db"),
            ("mongodb://user:sec@ret@h/db", "mongodb://user@h/db"),
            (
                "mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:secret&tls=true",
                "mongodb://h/?tls=true",
            ),
            (
                "mongodb://h/?tlsCertificateKeyFilePassword=secret",
                "mongodb://h/",
            ),
            (
                "postgres://u@h/db?passwor%64=secret&schema=jobs",
                "postgres://u@h/db?schema=jobs",
            ),
            (
                "redis+sentinel://:secret@s1,s2/0?primary=p&sentinelPassword=other",
                "redis+sentinel://@s1,s2/0?primary=p",
            ),
            ("nats://user:secret@h1,h2/app", "nats://@h1,h2/app"),
            ("nats://secret@h/app?replicas=3", "nats://@h/app?replicas=3"),
            (
                "etcds://root:secret@e1:2379,e2/tenure?ca=/etc/ca.pem",
                "etcds://root@e1:2379,e2/tenure?ca=/etc/ca.pem",
            ),
            (
                "sqlite:///a%20b.db?filesystem=trusted",
                "sqlite:///a%20b.db?filesystem=trusted",
            ),
        ] {
            let place = Place::Given(given.to_owned());
            assert_eq!(place.for_command(Credentials::Withheld), passed_on);
        }
    }

    #[test]
    fn credentials_are_shared_only_when_asked() {
        let url = "mongodb://user:secret@h/db";
        assert_eq!(Place::Given(url.to_owned()).for_command(Credentials::Shared), url);
    }

    #[test]
    fn a_relative_file_is_the_same_file_from_everywhere() {
        let url = Place::Given("sqlite:leases.db".to_owned()).for_command(Credentials::Withheld);
        let directory = std::env::current_dir().unwrap();
        assert_eq!(url, format!("sqlite:{}/leases.db", directory.display()));
    }

    #[test]
    fn a_path_survives_being_a_url() {
        let url = Place::Default(PathBuf::from("/a?b%c/leases.db")).for_command(Credentials::Withheld);
        assert_eq!(url, "sqlite:/a%3Fb%25c/leases.db");
    }
}
