//! The store's URL: libpq's, with a few options of ours in its query.

use crate::login;
use crate::schema::{SCHEMA, SCHEMA_BYTES_MAX};
use crate::tls::Trust;
use std::env::var_os;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::url::{self, split_scheme};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};

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
    /// What the driver reads in it.
    pub(crate) config: Config,
    /// The same for each host alone: they are dialled one by one.
    pub(crate) hosts: Vec<Config>,
    /// `sslmode=` and `sslrootcert=`.
    pub(crate) trust: Trust,
    /// `schema=`.
    pub(crate) schema: String,
    /// `listen=`.
    pub(crate) listening: Listening,
}

impl StoreUrl {
    /// Takes our options out of `url`, reads the rest as the driver does, and sets what the store needs of
    /// it.
    ///
    /// # Errors
    /// [`Fault::Invalid`]: not a PostgreSQL URL, or an option has no sense. The message shows an option of
    /// ours, never the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let scheme = split_scheme("PostgreSQL", url)?.map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("postgres" | "postgresql")) {
            return Err(invalid(
                "the PostgreSQL URL must begin with postgres:// or postgresql://",
            ));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        if has_twins(query) {
            // Not by its name: it may be a part of a password.
            return Err(invalid(
                "the PostgreSQL URL has an option twice; leave one of them out",
            ));
        }
        if has_encoded_name(query) {
            return Err(invalid(
                "the PostgreSQL URL has an option whose name is percent-encoded; write the name as it is",
            ));
        }
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
                        "client certificates, services and passfile are not supported in the PostgreSQL URL; authenticate with user \
                         and password, which may be in PGPASSWORD or in a password file (PGPASSFILE, ~/.pgpass)",
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
        if config.get_ssl_negotiation() == SslNegotiation::Direct && mode != SslMode::Require {
            return Err(invalid(
                "sslnegotiation=direct in the PostgreSQL URL needs sslmode=require or verify-full, as nothing is asked before",
            ));
        }
        settle(&mut config);
        // An @ beyond the credentials is one that a password should have escaped: then host or database,
        // which are shown, hold the rest of it.
        let named = shown_hosts(&config) + config.get_dbname().unwrap_or_default();
        let spilt = query.contains('@') || named.contains('@');
        let is_one_line = !place(&config, &schema).contains(char::is_control);
        if config.get_hosts().is_empty() || !is_one_line || spilt {
            return Err(Self::unreadable());
        }
        login::complete(&mut config, var_os("PGUSER"), || whoami::username().ok())?;
        Ok(Self {
            hosts: hosts(&config)?,
            config,
            trust,
            schema,
            listening,
        })
    }

    /// Hosts, database and schema, for people.
    pub(crate) fn place(&self) -> String {
        place(&self.config, &self.schema)
    }

    /// What to say when the driver cannot read the URL. Not in its own words: they quote what they stumbled
    /// over, and where a URL is cut off or not escaped, that is the password.
    fn unreadable() -> StoreError {
        invalid(
            "the PostgreSQL URL cannot be read: write postgres://user:password@host:port/database?options, check port and \
             options, and percent-encode special characters (such as @ : / ? %) in user and password",
        )
    }
}

/// Hosts, database and schema, for people.
pub(crate) fn place(config: &Config, schema: &str) -> String {
    let database = config.get_dbname().or(config.get_user()).unwrap_or("?");
    format!("{}/{database}.{schema}", shown_hosts(config))
}

fn shown_hosts(config: &Config) -> String {
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = port(config, index);
        match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    hosts.join(",")
}

fn port(config: &Config, host: usize) -> u16 {
    let ports = config.get_ports();
    ports.get(host).or(ports.first()).copied().unwrap_or(5432)
}

/// The options once for each host.
///
/// # Errors
/// [`Fault::Invalid`]: nobody could say which port or address is whose.
fn hosts(config: &Config) -> Result<Vec<Config>, StoreError> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let is_paired = |count| count == 0 || count == hosts.len();
    if !is_paired(addresses.len()) || !(is_paired(config.get_ports().len()) || config.get_ports().len() == 1)
    {
        return Err(invalid(
            "the PostgreSQL URL has another number of ports or of hostaddr than of hosts; give each host its own",
        ));
    }
    let alone = hosts.iter().enumerate().map(|(index, host)| {
        let mut one = without_hosts(config);
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(path) => one.host_path(path),
        };
        one.port(port(config, index));
        if let Some(address) = addresses.get(index) {
            one.hostaddr(*address);
        }
        one
    });
    Ok(alone.collect())
}

/// All options but the hosts, one by one: the driver's type takes hosts, and gives none back.
fn without_hosts(from: &Config) -> Config {
    let mut config = Config::new();
    config
        .ssl_mode(from.get_ssl_mode())
        .ssl_negotiation(from.get_ssl_negotiation())
        .keepalives(from.get_keepalives())
        .keepalives_idle(from.get_keepalives_idle())
        .target_session_attrs(from.get_target_session_attrs())
        .channel_binding(from.get_channel_binding())
        .load_balance_hosts(from.get_load_balance_hosts());
    from.get_user().map(|user| config.user(user));
    from.get_password().map(|password| config.password(password));
    from.get_dbname().map(|name| config.dbname(name));
    from.get_options().map(|options| config.options(options));
    from.get_application_name()
        .map(|name| config.application_name(name));
    from.get_connect_timeout()
        .map(|allowed| config.connect_timeout(*allowed));
    from.get_tcp_user_timeout()
        .map(|allowed| config.tcp_user_timeout(*allowed));
    from.get_keepalives_interval()
        .map(|interval| config.keepalives_interval(interval));
    from.get_keepalives_retries()
        .map(|retries| config.keepalives_retries(retries));
    config
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

fn encryption(mode: Option<&str>, roots: Option<String>) -> Result<(SslMode, Trust), StoreError> {
    // Whoever names roots wants them used: no mode goes on without them, as libpq's `prefer` does. The name
    // is checked, too, where libpq would check the chain alone.
    Ok(match (mode.unwrap_or("prefer"), roots) {
        ("disable", None) => (SslMode::Disable, Trust::Anybody),
        ("disable", Some(_)) => {
            return Err(invalid(
                "the PostgreSQL URL names roots by sslrootcert, and says sslmode=disable: leave one of them out",
            ));
        }
        ("allow" | "prefer", None) => (SslMode::Prefer, Trust::Anybody),
        ("require", None) => (SslMode::Require, Trust::Anybody),
        ("verify-ca" | "verify-full", None) => (SslMode::Require, Trust::PublicRoots),
        ("allow" | "prefer" | "require" | "verify-ca" | "verify-full", Some(path)) => {
            (SslMode::Require, Trust::RootsIn(PathBuf::from(path)))
        }
        _ => {
            return Err(invalid(
                "sslmode in the PostgreSQL URL is disable, prefer, require or verify-full",
            ));
        }
    })
}

/// Whether an option stands there twice, so that nobody could say which of them counts.
fn has_twins(query: &str) -> bool {
    let names: Vec<&str> = names(query).collect();
    names
        .iter()
        .enumerate()
        .any(|(place, name)| names[..place].contains(name))
}

/// Whether the driver, which decodes names, would read an option that is another one to whoever goes by them:
/// to what is said here of the encryption, and to who takes the password out of a URL.
fn has_encoded_name(query: &str) -> bool {
    names(query).any(|name| name.contains('%'))
}

fn names(query: &str) -> impl Iterator<Item = &str> {
    let options = query.split('&').filter(|option| !option.is_empty());
    options.map(|option| option.split('=').next().unwrap_or_default())
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
    url::decoded(text).ok_or_else(|| invalid("an option in the PostgreSQL URL is not UTF-8"))
}

pub(crate) fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::StoreUrl;

    #[test]
    fn host_alone_has_every_option_of_the_url() {
        let url = StoreUrl::parse(
            "postgres://me:secret@db:5433/bank?hostaddr=127.0.0.1&options=-c%20a%3Db&application_name=mine&connect_timeout=7\
             &tcp_user_timeout=8&keepalives=0&keepalives_idle=6&keepalives_interval=5&keepalives_retries=4\
             &target_session_attrs=read-only&channel_binding=require&load_balance_hosts=random&sslnegotiation=direct\
             &sslmode=require",
        );
        let url = url.expect("a URL");
        assert!(url.hosts == [url.config]);
    }

    #[test]
    fn place_is_shown_as_a_url_names_it() {
        for (url, place) in [
            (
                "postgres://[::1],[fe80::1]:5433/bank",
                "[::1]:5432,[fe80::1]:5433/bank.tenure",
            ),
            // No database is named, so it is the user's.
            ("postgres://me%40corp:secret@db", "db:5432/me@corp.tenure"),
        ] {
            let parsed = StoreUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(parsed.place(), place);
        }
    }

    #[test]
    fn host_has_its_own_port_and_address() {
        let url = StoreUrl::parse("postgres://a:1,b:2/bank?hostaddr=10.0.0.1,10.0.0.2").expect("a URL");
        let shown: Vec<_> = url
            .hosts
            .iter()
            .map(|host| {
                format!(
                    "{:?} {:?} {:?}",
                    host.get_hosts(),
                    host.get_hostaddrs(),
                    host.get_ports()
                )
            })
            .collect();
        assert_eq!(
            shown,
            ["[Tcp(\"a\")] [10.0.0.1] [1]", "[Tcp(\"b\")] [10.0.0.2] [2]"]
        );
        assert!(StoreUrl::parse("postgres://a,b/bank?hostaddr=10.0.0.1").is_err());
    }
}
