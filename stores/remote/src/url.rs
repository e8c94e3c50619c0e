//! What the URLs of all stores have in common.

use std::fmt;
use tenure_core::{Fault, StoreError};

/// Takes the scheme off a URL of `system`; `None` where it has none.
///
/// # Errors
/// [`Fault::Invalid`], not applied: it is a list of URLs, as other programs take it. Read as one, it would
/// name the first of its hosts alone, and another place beside them than a list that begins with another.
pub fn split_scheme<'a>(system: &str, url: &'a str) -> Result<Option<(&'a str, &'a str)>, StoreError> {
    let address = url.split('?').next().unwrap_or_default();
    if address.matches("://").count() > 1 {
        return Err(StoreError::not_applied(
            Fault::Invalid,
            format!(
                "the {system} URL has :// twice: write the scheme once, and the hosts after it, separated by commas \
                 (scheme://user:password@host:port,host:port/…); percent-encode : and / in user and password"
            ),
        ));
    }
    Ok(url.split_once("://"))
}

/// Percent-decoding; `None` where what comes out is not UTF-8. An incomplete escape stands for itself.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |place: usize| after.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        let escaped = (*first == b'%').then(|| digit(0).zip(digit(1))).flatten();
        match escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// A server by its name and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// As it is resolved: an IPv6 address without brackets.
    pub name: String,
    /// Where it listens.
    pub port: u16,
}

impl Host {
    /// Reads `name`, `name:port`, `[::1]` or `[::1]:port`.
    #[must_use]
    pub fn read(text: &str, default_port: u16) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, port) = rest.split_once(']')?;
                (name, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let port = match port {
            "" => default_port,
            digits => digits.parse().ok().filter(|port| *port > 0)?,
        };
        let odd = |character: char| !(character.is_alphanumeric() || "-._:%".contains(character));
        let is_name = !name.is_empty() && name.len() <= HOST_BYTES_MAX && !name.contains(odd);
        is_name.then(|| Self {
            name: name.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// Longest name of a host, in bytes: what the DNS allows, and an address with its zone.
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::{Host, decoded};

    #[test]
    fn only_two_digits_behind_a_percent_sign_are_an_escape() {
        for (text, read) in [
            ("a%2fb%2Fc", Some("a/b/c")),
            ("%c3%a9", Some("é")),
            ("100%", Some("100%")),
            ("%2", Some("%2")),
            ("%+f%zz%é", Some("%+f%zz%é")),
            ("%ff", None),
        ] {
            assert_eq!(decoded(text).as_deref(), read, "{text}");
        }
    }

    #[test]
    fn host_is_shown_as_it_is_read() {
        for (text, shown) in [
            ("db", "db:7"),
            ("db:", "db:7"),
            ("db:1", "db:1"),
            ("[::1]", "[::1]:7"),
            ("[fe80::1%eth0]:1", "[fe80::1%eth0]:1"),
        ] {
            let host = Host::read(text, 7).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(host.to_string(), shown);
        }
        for wrong in [
            "", ":1", "db:0", "db:65536", "db:port", "[::1", "[::1]1", "a b", "a/b",
        ] {
            assert_eq!(Host::read(wrong, 7), None, "{wrong}");
        }
    }
}
