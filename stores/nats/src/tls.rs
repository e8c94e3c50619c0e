//! The files of an encrypted connection: whom it trusts, and as whom it is made.

use async_nats::ConnectOptions;
use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};

/// PEM files. They are read anew for each connection.
#[derive(Clone, Default)]
pub(crate) struct TlsFiles {
    /// Of the roots that are trusted, and no other.
    pub(crate) roots: Option<PathBuf>,
    /// Of the client's certificate and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Has a connection be made with them.
    ///
    /// # Errors
    /// Why one of them is of no use.
    pub(crate) fn add_to(&self, mut options: ConnectOptions) -> Result<ConnectOptions, String> {
        if let Some(roots) = &self.roots {
            check_certificates("ca", roots)?;
            options = options.add_root_certificates(roots.clone());
        }
        if let Some((certificate, key)) = &self.identity {
            check_certificates("cert", certificate)?;
            PrivateKeyDer::from_pem_file(key)
                .map_err(|error| wrong("key", key, &error.to_string(), "a private key"))?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }
}

/// The driver takes a file without certificates, and trusts nobody then.
fn check_certificates(option: &str, path: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(wrong(option, path, "holds no certificate", "certificates"))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(wrong(option, path, &error.to_string(), "certificates")),
    }
}

fn wrong(option: &str, path: &Path, why: &str, what: &str) -> String {
    format!("{option} {}: {why}; name a PEM file of {what}", path.display())
}
