//! The store's URL.

use std::path::PathBuf;
use tenure_core::{Fault, StoreError};
use tenure_remote::TlsFiles;
pub(crate) use tenure_remote::url::Host;
use tenure_remote::url::{self, split_scheme};

/// The bucket of a URL that names none.
const BUCKET: &str = "tenure";

/// How wrong a clock may go unless the URL says: what a timing assumes by default.
const RATE_ERROR_PPM: u32 = 500;

/// Whether connections are encrypted whatever the server says. One that demands it is obeyed either way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Security {
    Plain,
    Tls,
}

/// Who connects. Holds secrets, so it is never shown: no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Nobody,
    User {
        name: String,
        password: String,
    },
    Token(String),
    /// By the credentials in a file.
    File(PathBuf),
}

/// A URL taken apart. Holds secrets, so it is never shown: no `Debug`.
#[derive(Clone)]
pub(crate) struct StoreUrl {
    pub(crate) security: Security,
    pub(crate) tls: TlsFiles,
    pub(crate) hosts: Vec<Host>,
    pub(crate) login: Login,
    pub(crate) bucket: String,
    pub(crate) replicas: Option<u8>,
    pub(crate) monitors: Vec<Host>,
    pub(crate) rate_error_ppm: u32,
}

impl StoreUrl {
    /// Reads a URL: `nats[+tls]://[user:password@|token@]host[:port][,…][/bucket][?options]`.
    ///
    /// # Errors
    /// [`Fault::Invalid`]. The message shows the bucket or an option's value at most, never the URL.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = split_scheme("NATS", url)?.ok_or_else(unreadable)?;
        let security = match scheme {
            "nats" => Security::Plain,
            "nats+tls" => Security::Tls,
            _ => return Err(unreadable()),
        };
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        // The last @ ends the credentials: one in a badly encoded password must not become a host's name.
        let (login, place) = match address.rsplit_once('@') {
            Some((login, place)) => (read_login(login)?, place),
            None => (Login::Nobody, address),
        };
        let (hosts, bucket) = place.split_once('/').unwrap_or((place, ""));
        let mut parsed = Self {
            security,
            tls: TlsFiles::default(),
            hosts: read_hosts(hosts, PORT)?,
            login,
            bucket: read_bucket(bucket.trim_end_matches('/'))?,
            replicas: None,
            monitors: Vec::new(),
            rate_error_ppm: RATE_ERROR_PPM,
        };
        let mut seen = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let key = option.split('=').next().unwrap_or_default();
            // Nobody could say which of the two counts. Not by its name: it may be a part of a password.
            if seen.contains(&key) {
                return Err(invalid("the NATS URL has an option twice; leave one of them out"));
            }
            seen.push(key);
            let value = option.split_once('=').map_or("", |(_, value)| value);
            if !parsed.tls.take("NATS", key, &decoded(value)?)? {
                parsed.set(key, value)?;
            }
        }
        parsed
            .tls
            .check("NATS", security == Security::Tls, "write nats+tls://")?;
        Ok(parsed)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        match key {
            "replicas" => self.replicas = Some(read_replicas(value)?),
            "monitor" => self.monitors = read_hosts(&decoded(value)?, MONITOR_PORT)?,
            "rateErrorPpm" => self.rate_error_ppm = read_rate_error(value)?,
            "creds" => {
                if self.login != Login::Nobody {
                    return Err(invalid(
                        "the NATS URL has a user or a token and creds; leave one of them out",
                    ));
                }
                self.login = Login::File(read_file(value)?);
            }
            // Not by its name: after an unescaped ? in a password it is the password's end.
            _ => {
                return Err(invalid(
                    "the NATS URL has an option that is not known; known are ca, cert, creds, key, monitor, rateErrorPpm and \
                     replicas",
                ));
            }
        }
        Ok(())
    }

    /// The hosts and the bucket, for people.
    pub(crate) fn shown(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        format!("{}/{}", hosts.join(","), self.bucket)
    }
}

fn read_login(text: &str) -> Result<Login, StoreError> {
    Ok(match text.split_once(':') {
        Some((name, password)) => Login::User {
            name: decoded(name)?,
            password: decoded(password)?,
        },
        None if text.is_empty() => Login::Nobody,
        None => Login::Token(decoded(text)?),
    })
}

fn read_hosts(text: &str, default_port: u16) -> Result<Vec<Host>, StoreError> {
    let hosts: Vec<Host> = text
        .split(',')
        .map(|host| read_host(host, default_port))
        .collect::<Result<_, _>>()?;
    if hosts.len() > HOSTS_MAX {
        return Err(invalid(&format!(
            "the NATS URL names {} servers; name {HOSTS_MAX} at most",
            hosts.len()
        )));
    }
    Ok(hosts)
}

fn read_host(text: &str, default_port: u16) -> Result<Host, StoreError> {
    Host::read(text, default_port).ok_or_else(unreadable)
}

fn read_bucket(text: &str) -> Result<String, StoreError> {
    let odd = |character: char| !(character.is_ascii_alphanumeric() || "-_".contains(character));
    match text {
        "" => Ok(BUCKET.to_owned()),
        _ if text.len() > BUCKET_BYTES_MAX || text.contains(odd) => Err(invalid(&format!(
            "the NATS URL's bucket is longer than {BUCKET_BYTES_MAX} bytes, or has other characters than letters, digits, - \
             and _"
        ))),
        _ => Ok(text.to_owned()),
    }
}

fn read_replicas(text: &str) -> Result<u8, StoreError> {
    let number = text.parse().ok().filter(|number| [1, 3, 5].contains(number));
    number.ok_or_else(|| invalid(&format!("replicas \"{}\" is not 1, 3 or 5", shown(text))))
}

fn read_rate_error(text: &str) -> Result<u32, StoreError> {
    let number = text.parse().ok().filter(|number| *number <= RATE_ERROR_PPM_MAX);
    number.ok_or_else(|| {
        let text = shown(text);
        invalid(&format!(
            "rateErrorPpm \"{text}\" is not 0 to {RATE_ERROR_PPM_MAX} parts per million; {RATE_ERROR_PPM} suits NTP"
        ))
    })
}

fn read_file(text: &str) -> Result<PathBuf, StoreError> {
    match decoded(text)? {
        path if path.is_empty() => Err(invalid(
            "creds is empty; name a file of credentials, or leave it out",
        )),
        path => Ok(path.into()),
    }
}

fn shown(text: &str) -> String {
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}

fn decoded(text: &str) -> Result<String, StoreError> {
    url::decoded(text).ok_or_else(unreadable)
}

/// Not in the words of what was stumbled over: where a URL is cut off or not escaped, that is the password.
fn unreadable() -> StoreError {
    invalid(
        "the NATS URL cannot be read: write nats://user:password@host:port,host:port/bucket?options (nats+tls: for TLS), and \
         percent-encode special characters (such as @ : / ? %) in user and password",
    )
}

fn invalid(message: &str) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}

const PORT: u16 = 4222;
const MONITOR_PORT: u16 = 8222;

/// Most servers of a URL: each may be waited for.
const HOSTS_MAX: usize = 9;

/// Longest name of a bucket, in bytes.
const BUCKET_BYTES_MAX: usize = 100;

/// Longest part of a wrong text that a message shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// A clock that goes wrong by more than a tenth is none.
const RATE_ERROR_PPM_MAX: u32 = 100_000;
