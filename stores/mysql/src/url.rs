//! The store's URL.

use tenure_core::{Fault, StoreError};
use tenure_remote::TlsFiles;
use tenure_remote::url::{self, split_scheme};

/// Where MySQL and MariaDB listen.
const PORT: u16 = 3306;

/// Longest name of a database, in characters.
const DATABASE_CHARACTERS_MAX: usize = 64;

/// `ssl-mode=`, as MySQL's own clients know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encryption {
    /// Never.
    Disabled,
    /// Where the server can; it keeps out who listens, not who intercepts.
    Preferred,
    /// Always, without asking who the server is.
    Required,
    /// Always, with a certificate from a known root for the host's name.
    VerifyIdentity,
}

/// A URL taken apart. Holds the password, so it is never shown: no `Debug`.
#[derive(Clone)]
pub(crate) struct StoreUrl {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: String,
    /// `ssl-mode=`.
    pub(crate) encryption: Encryption,
    /// `ssl-ca=`, a PEM file of roots, Mozilla's where it is absent; `ssl-cert=` and `ssl-key=`. They are
    /// read anew for each connection.
    pub(crate) files: TlsFiles,
}

impl StoreUrl {
    /// Reads `mysql://user:password@host:port/database?options`, and the same with `mariadb://`.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: not such a URL, or an option has no sense. The message shows an option's name,
    /// never the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let Some(("mysql" | "mariadb", rest)) = split_scheme("MySQL", url)? else {
            return Err(invalid("the MySQL URL must begin with mysql:// or mariadb://"));
        };
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Special characters of a password that was not escaped shift everything after them, and host and
        // database are shown: what then would be part of one is refused.
        if query.contains('@') || address.matches('@').count() > 1 {
            return Err(unreadable());
        }
        let (credentials, place) = match address.split_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, address),
        };
        let (host, database) = place.split_once('/').ok_or_else(unreadable)?;
        let (host, port) = host_and_port(host)?;
        let database = decoded(database)?;
        let named = !database.is_empty() && database.chars().count() <= DATABASE_CHARACTERS_MAX;
        if !named || database.contains(['/', '`', '@']) || database.contains(char::is_control) {
            return Err(invalid(
                "the MySQL URL must name a database of at most 64 characters after the host: mysql://host/database",
            ));
        }
        let (user, password) = match credentials.map(|both| both.split_once(':').unwrap_or((both, ""))) {
            Some((user, "")) => (Some(decoded(user)?), None),
            Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
            None => (None, None),
        };
        let (encryption, files) = options(query)?;
        Ok(Self {
            host,
            port,
            user,
            password,
            database,
            encryption,
            files,
        })
    }

    /// Host, port and database, for people.
    pub(crate) fn place(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}/{}", self.host, self.port, self.database),
            false => format!("{}:{}/{}", self.host, self.port, self.database),
        }
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), StoreError> {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, ""))) => (host, None),
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':').ok_or_else(unreadable)?)),
        Some(None) => return Err(unreadable()),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(fits) {
        return Err(unreadable());
    }
    let port = match port {
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(unreadable)?,
        None => PORT,
    };
    Ok((host.to_owned(), port))
}

fn options(query: &str) -> Result<(Encryption, TlsFiles), StoreError> {
    let (mut mode, mut files) = (None, TlsFiles::with_prefix("ssl-"));
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("ssl-mode", _)) if mode.is_some() => return Err(twice("ssl-mode")),
            Some(("ssl-mode", text)) => {
                mode = Some(match text {
                    "disabled" => Encryption::Disabled,
                    "preferred" => Encryption::Preferred,
                    "required" => Encryption::Required,
                    // The name is checked, too, where MySQL's clients would check the chain alone.
                    "verify-ca" | "verify-identity" => Encryption::VerifyIdentity,
                    _ => {
                        return Err(invalid(
                            "ssl-mode in the MySQL URL is disabled, preferred, required, verify-ca or verify-identity",
                        ));
                    }
                });
            }
            Some((name, path)) if files.take("MySQL", name, &decoded(path)?)? => {}
            _ => {
                let name = option.split('=').next().unwrap_or_default();
                let shown = match KNOWN_ELSEWHERE.contains(&name) {
                    true => format!("\"{name}\""),
                    // It may be a part of a password.
                    false => "that is none".to_owned(),
                };
                return Err(invalid(&format!(
                    "the MySQL URL has an option {shown}; ssl-mode, ssl-ca, ssl-cert and ssl-key are known; percent-encode \
                     special characters (such as @ : / ? %) in user and password"
                )));
            }
        }
    }
    let mode = mode.unwrap_or(Encryption::Preferred);
    files.check(
        "MySQL",
        mode != Encryption::Disabled,
        "leave ssl-mode=disabled out",
    )?;
    // The driver reads them again.
    drop(files.read()?);
    // Whoever names files wants them used.
    let mode = match mode {
        Encryption::Preferred | Encryption::Required if files.roots().is_some() => Encryption::VerifyIdentity,
        Encryption::Preferred if files.identity().is_some() => Encryption::Required,
        _ => mode,
    };
    Ok((mode, files))
}

/// Nobody could say which of the two counts.
fn twice(option: &str) -> StoreError {
    invalid(&format!(
        "the MySQL URL has {option} twice; leave one of them out"
    ))
}

/// Options of other programs, which a message may name.
const KNOWN_ELSEWHERE: [&str; 6] = [
    "socket",
    "compression",
    "sslmode",
    "require_ssl",
    "verify_ca",
    "pool_max",
];

fn decoded(text: &str) -> Result<String, StoreError> {
    url::decoded(text).ok_or_else(|| invalid("a part of the MySQL URL is not UTF-8"))
}

/// What to say of a URL that cannot be read: none of it, as any part may be the password.
fn unreadable() -> StoreError {
    invalid(
        "the MySQL URL cannot be read: write mysql://user:password@host:port/database?options, check host and port, and \
         percent-encode special characters (such as @ : / ? %) in user and password",
    )
}

pub(crate) fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}
