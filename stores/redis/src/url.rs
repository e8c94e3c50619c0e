//! The store's URL.

use std::net::IpAddr;
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tenure_remote::TlsFiles;
pub(crate) use tenure_remote::url::Host;
use tenure_remote::url::{self, split_scheme};

/// What the names of all keys begin with, unless the URL has `prefix=`.
pub(crate) const PREFIX: &str = "tenure";

/// What the hosts of a URL are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Set {
    /// One server, or members of a cluster.
    Server,
    /// Sentinels, which know the address of this primary.
    Sentinels { primary: String },
    /// Servers that know nothing of each other.
    Independent,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Security {
    Plain,
    Tls,
}

/// Who connects. Holds the password, so it is never shown: no `Debug`.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// A URL taken apart. Holds the password, so it is never shown: no `Debug`.
#[derive(Clone)]
pub(crate) struct StoreUrl {
    pub(crate) set: Set,
    pub(crate) security: Security,
    /// For TLS.
    pub(crate) tls: TlsFiles,
    pub(crate) hosts: Vec<Host>,
    pub(crate) credentials: Credentials,
    /// For the sentinels; the servers' own where the URL has none.
    pub(crate) sentinel_credentials: Credentials,
    pub(crate) database: u16,
    pub(crate) prefix: String,
    pub(crate) purge_after: Option<Duration>,
}

impl StoreUrl {
    /// What no message may hold.
    pub(crate) fn passwords(&self) -> impl Iterator<Item = &str> {
        let all = [&self.credentials, &self.sentinel_credentials];
        all.into_iter()
            .filter_map(|credentials| credentials.password.as_deref())
    }

    /// Reads a URL: `redis[s][+sentinel|+quorum]://[[user]:password@]host[:port][,…][/database][?options]`.
    ///
    /// # Errors
    /// [`Fault::Invalid`]. The message shows an option at most, never the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = split_scheme("Redis", url)?.ok_or_else(unreadable)?;
        let (security, kind) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", kind) => (Security::Plain, kind),
            ("rediss", kind) => (Security::Tls, kind),
            _ => return Err(unreadable()),
        };
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let options = Options::parse(query)?;
        options
            .tls
            .check("Redis", security == Security::Tls, "write rediss://")?;
        let for_sentinels = options.primary.is_some() || options.sentinel_credentials.is_some();
        let (set, port) = match kind {
            // A sentinel taken for a server would keep leases that nobody else finds.
            "" | "quorum" if for_sentinels => {
                return Err(invalid(
                    "primary, sentinelUser and sentinelPassword are for sentinels, which the Redis URL does not name; write \
                     redis+sentinel:// or leave them out",
                ));
            }
            "" => (Set::Server, PORT),
            // Each member would remove by itself, whatever the others know, and keep nothing of the tokens;
            // and only what was renewed or given back.
            "quorum" if options.purge_after.is_some() => {
                return Err(invalid(
                    "purgeAfter is not for a quorum, whose members must agree that nobody uses a name; leave it out, and run \
                     `tenure gc`",
                ));
            }
            "quorum" => (Set::Independent, PORT),
            "sentinel" => {
                let primary = options.primary.clone().ok_or_else(|| {
                    invalid("the Redis URL names sentinels, but not what they watch: add ?primary=NAME")
                })?;
                (Set::Sentinels { primary }, SENTINEL_PORT)
            }
            _ => return Err(unreadable()),
        };
        // The last @ ends the credentials: one in a badly encoded password must not become a host's name.
        let (credentials, place) = match address.rsplit_once('@') {
            Some((credentials, place)) => (read_credentials(credentials)?, place),
            None => (Credentials::default(), address),
        };
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        let hosts: Vec<Host> = hosts
            .split(',')
            .map(|host| read_host(host, port))
            .collect::<Result<_, _>>()?;
        let database = match database.trim_end_matches('/') {
            "" => 0,
            text => text.parse().map_err(|_| unreadable())?,
        };
        let parsed = Self {
            sentinel_credentials: options
                .sentinel_credentials
                .unwrap_or_else(|| credentials.clone()),
            set,
            security,
            tls: options.tls,
            hosts,
            credentials,
            database,
            prefix: options.prefix.unwrap_or_else(|| PREFIX.to_owned()),
            purge_after: options.purge_after,
        };
        parsed.count_hosts()?;
        Ok(parsed)
    }

    fn count_hosts(&self) -> Result<(), StoreError> {
        let count = self.hosts.len();
        match self.set {
            Set::Server if count > MEMBERS_MAX => Err(invalid(&format!(
                "the Redis URL names {count} members of a cluster; {MEMBERS_MAX} of them are enough"
            ))),
            Set::Independent if !(QUORUM_MIN..=QUORUM_MAX).contains(&count) => Err(invalid(&format!(
                "a quorum of {count} servers: name {QUORUM_MIN} to {QUORUM_MAX}, an odd number of them"
            ))),
            Set::Independent if count.is_multiple_of(2) => Err(invalid(&format!(
                "a quorum of {count} servers survives no more failures than one of {}: name an odd number",
                count - 1
            ))),
            Set::Independent if is_only_in_part_of_this_machine(&self.hosts) => Err(invalid(
                "a quorum that names this machine by localhost, or an address such as 127.0.0.1, beside others: on another machine \
                 that is another server; give each member a name that leads to it from everywhere",
            )),
            Set::Independent if has_twins(&self.hosts) => Err(invalid(
                "a quorum that names one server twice: its members must be independent",
            )),
            Set::Server | Set::Sentinels { .. } | Set::Independent => Ok(()),
        }
    }

    /// The URL of each host alone.
    pub(crate) fn members(&self) -> Vec<Self> {
        let alone = |host: &Host| Self {
            set: Set::Server,
            hosts: vec![host.clone()],
            ..self.clone()
        };
        self.hosts.iter().map(alone).collect()
    }

    /// The hosts and the database, for people.
    pub(crate) fn shown(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        let hosts = hosts.join(",");
        match &self.set {
            Set::Sentinels { primary } => format!("{primary} of {hosts}/{}", self.database),
            Set::Server | Set::Independent => format!("{hosts}/{}", self.database),
        }
    }
}

/// A name that leads to another server on each machine, among names that do not.
fn is_only_in_part_of_this_machine(hosts: &[Host]) -> bool {
    let is_here = |host: &Host| match host.name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.name.eq_ignore_ascii_case("localhost"),
    };
    hosts.iter().any(is_here) && !hosts.iter().all(is_here)
}

fn has_twins(hosts: &[Host]) -> bool {
    hosts
        .iter()
        .enumerate()
        .any(|(place, host)| hosts[..place].contains(host))
}

#[derive(Default)]
struct Options {
    primary: Option<String>,
    prefix: Option<String>,
    purge_after: Option<Duration>,
    sentinel_credentials: Option<Credentials>,
    tls: TlsFiles,
}

impl Options {
    fn parse(query: &str) -> Result<Self, StoreError> {
        let mut options = Self::default();
        let mut seen = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            // Nobody could say which of the two counts. Not by its name: it may be a part of a password.
            if seen.contains(&key) {
                return Err(invalid(
                    "the Redis URL has an option twice; leave one of them out",
                ));
            }
            seen.push(key);
            if options.tls.take("Redis", key, &decoded(value)?)? {
                continue;
            }
            match key {
                "primary" => options.primary = Some(plain("primary", decoded(value)?)?),
                "prefix" => options.prefix = Some(prefix(decoded(value)?)?),
                "purgeAfter" => options.purge_after = Some(purge_after(&decoded(value)?)?),
                // Empty, they say that there is none, where the servers have one.
                "sentinelUser" => options.sentinel().user = filled(decoded(value)?),
                "sentinelPassword" => options.sentinel().password = filled(decoded(value)?),
                // Not by its name: after an unescaped ? in a password it is the password's end.
                _ => {
                    return Err(invalid(
                        "the Redis URL has an option that is not known; known are ca, cert, key, primary, prefix, \
                         purgeAfter, sentinelUser and sentinelPassword",
                    ));
                }
            }
        }
        Ok(options)
    }

    fn sentinel(&mut self) -> &mut Credentials {
        self.sentinel_credentials.get_or_insert_default()
    }
}

fn read_credentials(text: &str) -> Result<Credentials, StoreError> {
    let (user, password) = text
        .split_once(':')
        .map_or((text, None), |(user, password)| (user, Some(password)));
    Ok(Credentials {
        user: filled(decoded(user)?),
        password: password.map(decoded).transpose()?.and_then(filled),
    })
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn read_host(text: &str, default_port: u16) -> Result<Host, StoreError> {
    Host::read(text, default_port).ok_or_else(unreadable)
}

fn plain(what: &str, text: String) -> Result<String, StoreError> {
    if text.is_empty() || text.len() > PREFIX_BYTES_MAX || text.contains(char::is_control) {
        return Err(invalid(&format!(
            "the Redis URL's {what} is empty, longer than {PREFIX_BYTES_MAX} bytes, or has a control character"
        )));
    }
    Ok(text)
}

fn prefix(text: String) -> Result<String, StoreError> {
    let text = plain("prefix", text)?;
    if text.contains(['{', '}']) {
        return Err(invalid(
            "the Redis URL's prefix has a brace; leave braces out, the store puts the prefix in them",
        ));
    }
    Ok(text)
}

fn purge_after(text: &str) -> Result<Duration, StoreError> {
    let digits = text.len()
        - text
            .trim_start_matches(|character: char| character.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at(digits);
    let seconds_each = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    let wait = number
        .parse::<u64>()
        .ok()
        .zip(seconds_each)
        .and_then(|(number, each)| number.checked_mul(each));
    wait.map(Duration::from_secs).filter(|wait| (PURGE_AFTER_MIN..=PURGE_AFTER_MAX).contains(wait)).ok_or_else(|| {
        let shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).flat_map(char::escape_debug).collect();
        invalid(&format!(
            "purgeAfter \"{shown}\" is not from 1d to 36500d; 30d suits most, and without it nothing is ever removed"
        ))
    })
}

fn decoded(text: &str) -> Result<String, StoreError> {
    url::decoded(text).ok_or_else(unreadable)
}

/// Not in the words of what was stumbled over: where a URL is cut off or not escaped, that is the password.
fn unreadable() -> StoreError {
    invalid(
        "the Redis URL cannot be read: write redis://user:password@host:port/database?options (rediss: for TLS, \
         redis+sentinel:, redis+quorum:), and percent-encode special characters (such as @ : / ? %) in user and password",
    )
}

pub(crate) fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Most members of a cluster that a URL names: each that is gone costs the time of a connection.
const MEMBERS_MAX: usize = 9;

/// Fewest servers of a quorum: below, none may fail.
const QUORUM_MIN: usize = 3;

/// Most servers of a quorum: each costs a connection and a request.
const QUORUM_MAX: usize = 9;

/// Longest prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 100;

/// Longest part of a wrong text that a message shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// Shortest wait before unused names are removed: no term lasts that long without a renewal.
const PURGE_AFTER_MIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest wait before unused names are removed: a century.
const PURGE_AFTER_MAX: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);
