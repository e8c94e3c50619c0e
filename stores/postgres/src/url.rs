//! The store's URL: libpq's, with a few options of ours in its query.

use crate::schema::{SCHEMA, SCHEMA_BYTES_MAX};
use crate::tls::Trust;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

/// How long a connection may take to be made to one address, unless the URL has `connect_timeout`.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// After what silence the system asks whether the other side is still there; the driver's own is two hours.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);

/// How long what was sent may stay unacknowledged, unless the URL has `tcp_user_timeout`.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(5);

/// How watching learns of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listening {
    /// By `LISTEN`, where connecting has proved that notifications arrive.
    WhereItWorks,
    /// Not at all: said up front, it saves the proof behind a pooler.
    Off,
}

/// A URL taken apart. Holds the password, so it is never shown: no `Debug`.
#[derive(Clone)]
pub(crate) struct StoreUrl {
    /// What the driver gets.
    pub(crate) config: Config,
    /// `sslmode=` and `sslrootcert=`.
    pub(crate) trust: Trust,
    /// `schema=`.
    pub(crate) schema: String,
    /// `listen=`.
    pub(crate) listening: Listening,
}

impl StoreUrl {
    /// Takes our options out of `url`, reads the rest as the driver does, and sets what the store needs of it.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: not a PostgreSQL URL, or an option has no sense. The message shows an option of ours, never
    /// the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
            return Err(invalid(
                "the PostgreSQL URL must begin with postgres:// or postgresql://",
            ));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut listening) = (SCHEMA.to_owned(), Listening::WhereItWorks);
        let (mut mode, mut roots, mut foreign) = (None, None, String::new());
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("schema", name)) => schema = schema_name(&decoded(name)?)?,
                Some(("listen", "off")) => listening = Listening::Off,
                Some(("listen", "on")) => listening = Listening::WhereItWorks,
                Some(("listen", _)) => return Err(invalid("listen in the PostgreSQL URL is on or off")),
                Some(("sslrootcert", path)) => roots = Some(decoded(path)?),
                Some(("sslmode", text)) => mode = Some(decoded(text)?),
                Some(("sslcert" | "sslkey" | "sslpassword" | "passfile" | "service", _)) => {
                    return Err(invalid(
                        "client certificates, password files and services are not supported in the PostgreSQL URL; \
                         authenticate with user and password",
                    ));
                }
                _ => {
                    let separator = if foreign.is_empty() { '?' } else { '&' };
                    let _infallible = write!(foreign, "{separator}{option}");
                }
            }
        }
        let (mode, trust) = encryption(mode.as_deref(), roots)?;
        let mut config: Config = format!("{address}{foreign}")
            .parse()
            .map_err(|_quotes_the_url| Self::unreadable())?;
        config.ssl_mode(mode);
        settle(&mut config);
        let parsed = Self {
            config,
            trust,
            schema,
            listening,
        };
        let place = parsed.place();
        // An @ beyond the credentials is one that a password should have escaped: then host or database, which are shown,
        // hold the rest of it.
        let spilt = query.contains('@') || place.contains('@');
        if parsed.config.get_hosts().is_empty() || place.contains(char::is_control) || spilt {
            return Err(Self::unreadable());
        }
        Ok(parsed)
    }

    /// Hosts, database and schema, for people.
    pub(crate) fn place(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(index, host)| {
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        let hosts: Vec<String> = hosts.collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("?");
        format!("{}/{database}.{}", hosts.join(","), self.schema)
    }

    /// What to say when the driver cannot read the URL. Not in its own words: they quote what they stumbled over, and
    /// where a URL is cut off or not escaped, that is the password.
    fn unreadable() -> StoreError {
        invalid(
            "the PostgreSQL URL cannot be read: write postgres://user:password@host:port/database?options, check port and \
             options, and percent-encode special characters (such as @ : / ? %) in user and password",
        )
    }
}

/// Sets what the store needs of the driver, where the URL does not say otherwise.
fn settle(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECTION_TIME_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED_TIME_MAX);
    }
    if config.get_keepalives_idle() > KEEPALIVE_AFTER {
        config.keepalives_idle(KEEPALIVE_AFTER);
    }
    if config.get_application_name().is_none() {
        config.application_name("tenure");
    }
    // Of several hosts, the one that takes writes. One host alone is asked what it is, and told of by name.
    if config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

fn encryption(
    mode: Option<&str>,
    roots: Option<String>,
) -> Result<(tokio_postgres::config::SslMode, Trust), StoreError> {
    use tokio_postgres::config::SslMode;
    let verified = |roots: Option<String>| match roots {
        Some(path) => Trust::RootsIn(PathBuf::from(path)),
        None => Trust::PublicRoots,
    };
    Ok(match mode.unwrap_or("prefer") {
        "disable" => (SslMode::Disable, Trust::Anybody),
        "allow" | "prefer" => (SslMode::Prefer, Trust::Anybody),
        // As libpq: whoever names roots wants them used.
        "require" if roots.is_none() => (SslMode::Require, Trust::Anybody),
        // The name is checked, too, where libpq would check the chain alone.
        "require" | "verify-ca" | "verify-full" => (SslMode::Require, verified(roots)),
        _ => {
            return Err(invalid(
                "sslmode in the PostgreSQL URL is disable, prefer, require or verify-full",
            ));
        }
    })
}

fn schema_name(name: &str) -> Result<String, StoreError> {
    let first = name
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first == '_');
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if first && name.chars().all(rest) && name.len() <= SCHEMA_BYTES_MAX && !name.starts_with("pg_") {
        return Ok(name.to_owned());
    }
    let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
    Err(invalid(&format!(
        "schema \"{shown}\" in the PostgreSQL URL is no name for a schema: 1 to {SCHEMA_BYTES_MAX} of a-z, 0-9 and _, not \
         beginning with a digit or pg_"
    )))
}

fn decoded(text: &str) -> Result<String, StoreError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = digits
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).map_err(|_| invalid("an option in the PostgreSQL URL is not UTF-8"))
}

pub(crate) fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}
