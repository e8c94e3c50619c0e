//! The PEM files that a URL names for encrypted connections: `ca=`, `cert=` and `key=`.

use crate::plain_file::begin_of_file;
use std::path::{Path, PathBuf};
use tenure_core::{Fault, StoreError};

/// Largest file that is read, in bytes. The roots of a whole system have a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a PEM file is to hold.
struct Pem {
    /// What its first line says. The drivers pass over whatever else there is.
    labels: &'static [&'static str],
    one: &'static str,
    wanted: &'static str,
}

impl Pem {
    fn is_in(&self, text: &str) -> bool {
        text.lines().any(|line| {
            let label = line.trim_end().strip_prefix("-----BEGIN ");
            let label = label.and_then(|label| label.strip_suffix("-----"));
            label.is_some_and(|label| self.labels.contains(&label))
        })
    }
}

const CERTIFICATES: Pem = Pem {
    labels: &["CERTIFICATE"],
    one: "certificate",
    wanted: "certificates",
};

const PRIVATE_KEY: Pem = Pem {
    labels: &["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"],
    one: "private key",
    wanted: "a private key",
};

/// Whom an encrypted connection trusts, and as whom it is made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TlsFiles {
    /// What stands before the names of the options.
    prefix: &'static str,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// What the files hold. Holds a secret, so it is never shown: no `Debug`.
pub struct TlsParts {
    /// The roots that are trusted, and no other; `None` for those of the driver.
    pub roots: Option<Vec<u8>>,
    /// The client's certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    /// None yet, of a URL in which this stands before the names of the options, as `ssl-`.
    #[must_use]
    pub fn with_prefix(prefix: &'static str) -> Self {
        Self {
            prefix,
            ..Self::default()
        }
    }

    /// Takes an option of a URL of `system`, decoded, if it is one of these. Whether it was.
    ///
    /// # Errors
    /// [`Fault::Invalid`], not applied: it names no file, or stands there twice.
    pub fn take(&mut self, system: &str, option: &str, value: &str) -> Result<bool, StoreError> {
        let place = match option.strip_prefix(self.prefix) {
            Some("ca") => &mut self.roots,
            Some("cert") => &mut self.certificate,
            Some("key") => &mut self.key,
            _ => return Ok(false),
        };
        if value.is_empty() {
            return Err(invalid(format!(
                "{option} in the {system} URL is empty; name a PEM file, or leave it out"
            )));
        }
        // Nobody could say which of the two counts.
        if place.replace(PathBuf::from(value)).is_some() {
            return Err(invalid(format!(
                "the {system} URL has {option} twice; leave one of them out"
            )));
        }
        Ok(true)
    }

    /// Refuses files that are of no use: for connections that are not encrypted, and a certificate without
    /// its key. `way_out` is what has them encrypted.
    ///
    /// # Errors
    /// [`Fault::Invalid`], not applied.
    pub fn check(&self, system: &str, is_encrypted: bool, way_out: &str) -> Result<(), StoreError> {
        let prefix = self.prefix;
        if !is_encrypted && *self != Self::with_prefix(prefix) {
            return Err(invalid(format!(
                "{prefix}ca, {prefix}cert and {prefix}key in the {system} URL are for TLS; {way_out}"
            )));
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(invalid(format!(
                "{prefix}cert and {prefix}key in the {system} URL belong together; give both, or neither"
            )));
        }
        Ok(())
    }

    /// The file of the roots.
    #[must_use]
    pub fn roots(&self) -> Option<&Path> {
        self.roots.as_deref()
    }

    /// The files of the client's certificate and its key.
    #[must_use]
    pub fn identity(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }

    /// Reads them, as they are now: they are replaced before they expire.
    ///
    /// # Errors
    /// [`Fault::Invalid`], not applied: one cannot be read, or holds nothing of its kind.
    pub fn read(&self) -> Result<TlsParts, StoreError> {
        let named = |option: &str| format!("{}{option}", self.prefix);
        let identity = |(certificate, key)| {
            let key = read(&named("key"), key, &PRIVATE_KEY)?;
            Ok((read_certificates(&named("cert"), certificate)?, key))
        };
        let roots = self.roots().map(|path| read_certificates(&named("ca"), path));
        Ok(TlsParts {
            roots: roots.transpose()?,
            identity: self.identity().map(identity).transpose()?,
        })
    }
}

/// Reads a file of certificates that `option` of a URL names, also where a driver reads it again: many a
/// driver opens whatever is there, and passes over what it cannot read.
///
/// # Errors
/// [`Fault::Invalid`], not applied: it cannot be read, is no plain file, or holds no certificate.
pub fn read_certificates(option: &str, path: &Path) -> Result<Vec<u8>, StoreError> {
    read(option, path, &CERTIFICATES)
}

fn read(option: &str, path: &Path, what: &Pem) -> Result<Vec<u8>, StoreError> {
    let wrong = |why: String| {
        let shown = path.display().to_string();
        invalid(format!(
            "{option} {}: {why}; name a PEM file of {}",
            shown.escape_debug(),
            what.wanted
        ))
    };
    let bytes = begin_of_file(path, FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    if !what.is_in(&text) {
        return Err(wrong(format!("it holds no {}", what.one)));
    }
    Ok(bytes)
}

fn invalid(message: String) -> StoreError {
    StoreError::not_applied(Fault::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::{CERTIFICATES, PRIVATE_KEY};

    #[test]
    fn only_what_the_drivers_read_is_a_certificate_or_a_key() {
        for (label, is_certificate, is_key) in [
            ("CERTIFICATE", true, false),
            ("TRUSTED CERTIFICATE", false, false),
            ("X509 CERTIFICATE", false, false),
            ("PRIVATE KEY", false, true),
            ("RSA PRIVATE KEY", false, true),
            ("EC PRIVATE KEY", false, true),
            ("ENCRYPTED PRIVATE KEY", false, false),
        ] {
            let text =
                format!("Bag Attributes\r\n-----BEGIN {label}-----\r\nMII=\r\n-----END {label}-----\r\n");
            assert_eq!(CERTIFICATES.is_in(&text), is_certificate, "{label}");
            assert_eq!(PRIVATE_KEY.is_in(&text), is_key, "{label}");
        }
    }
}
