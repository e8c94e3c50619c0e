//! The store's URL.

use tenure_core::{Fault, StoreError};
use tenure_remote::TlsFiles;
pub(crate) use tenure_remote::url::Host;
use tenure_remote::url::{self, split_scheme};

/// What every key begins with, unless the URL has a path.
pub(crate) const PREFIX: &str = "tenure";

/// Whether connections are encrypted, and how each side proves who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Security {
    Plain,
    /// By these files; Mozilla's roots are trusted without any.
    Tls(TlsFiles),
}

/// Who connects. Holds the password, so it is never shown: no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// A URL taken apart. Holds the password, so it is never shown: no `Debug`.
#[derive(Clone)]
pub(crate) struct StoreUrl {
    pub(crate) security: Security,
    pub(crate) hosts: Vec<Host>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) prefix: String,
}

impl StoreUrl {
    /// Reads a URL: `etcd[s]://[user:password@]host[:port][,…][/prefix][?options]`.
    ///
    /// # Errors
    /// [`Fault::Invalid`]. The message never shows the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = split_scheme("etcd", url)?.ok_or_else(unreadable)?;
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let security = security(scheme, query)?;
        // The last @ ends the credentials: one in a badly encoded password must not become a host's name.
        let (credentials, place) = match address.rsplit_once('@') {
            Some((credentials, place)) => (Some(read_credentials(credentials)?), place),
            None => (None, address),
        };
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        // As it was written: the hosts behind it would be a part of the prefix, and each order of the hosts
        // have its own leases.
        if path.contains(',') {
            return Err(invalid(
                "the etcd URL has a comma in its prefix: name all members before it (etcd://host,host,host/prefix); a prefix with \
                 a comma is written with %2C",
            ));
        }
        let hosts: Vec<Host> = hosts.split(',').map(read_host).collect::<Result<_, _>>()?;
        if hosts.len() > HOSTS_MAX {
            return Err(invalid(&format!(
                "the etcd URL names {} members; name {HOSTS_MAX} at most",
                hosts.len()
            )));
        }
        Ok(Self {
            security,
            hosts,
            credentials,
            prefix: prefix(&decoded(path)?)?,
        })
    }

    /// The members and the prefix, for people.
    pub(crate) fn shown(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        format!("{}/{}", hosts.join(","), self.prefix.escape_debug())
    }
}

/// Whether connections are encrypted, by the scheme and the options of a URL.
fn security(scheme: &str, query: &str) -> Result<Security, StoreError> {
    let mut files = TlsFiles::default();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if !files.take("etcd", name, &decoded(value)?)? {
            // Not by its name: after an unescaped ? in a password it is the password's end.
            return Err(invalid(
                "the etcd URL has an option that is not known; known are ca, cert and key",
            ));
        }
    }
    let is_encrypted = match scheme {
        "etcd" => false,
        "etcds" => true,
        _ => return Err(unreadable()),
    };
    files.check("etcd", is_encrypted, "write etcds://")?;
    Ok(match is_encrypted {
        true => Security::Tls(files),
        false => Security::Plain,
    })
}

fn read_credentials(text: &str) -> Result<Credentials, StoreError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (decoded(user)?, decoded(password)?);
    if user.is_empty() {
        return Err(unreadable());
    }
    Ok(Credentials { user, password })
}

fn read_host(text: &str) -> Result<Host, StoreError> {
    Host::read(text, PORT).ok_or_else(unreadable)
}

fn prefix(path: &str) -> Result<String, StoreError> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Ok(PREFIX.to_owned());
    }
    if path.len() > PREFIX_BYTES_MAX || path.contains(char::is_control) {
        return Err(invalid(&format!(
            "the etcd URL's prefix is longer than {PREFIX_BYTES_MAX} bytes, or has a control character"
        )));
    }
    Ok(path.to_owned())
}

fn decoded(text: &str) -> Result<String, StoreError> {
    url::decoded(text).ok_or_else(unreadable)
}

/// Not in the words of what was stumbled over: where a URL is cut off or not escaped, that is the password.
fn unreadable() -> StoreError {
    invalid(
        "the etcd URL cannot be read: write etcd://user:password@host:port,host:port/prefix (etcds: for TLS), and \
         percent-encode special characters (such as @ : / ? %) in user and password",
    )
}

pub(crate) fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}

const PORT: u16 = 2379;

/// Most members of a URL: etcd advises seven at most.
const HOSTS_MAX: usize = 9;

/// Longest prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 200;
