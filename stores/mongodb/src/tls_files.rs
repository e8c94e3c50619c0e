//! The files that a URL names for the driver, which opens whatever is there, and passes over what it cannot read.

use crate::url::invalid;
use mongodb::options::{ClientOptions, Tls};
use std::path::Path;
use tenure_core::StoreError;
use tenure_remote::begin_of_file;

/// Largest file that is looked through, in bytes. The roots of a whole system have a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// That each is a plain file with a certificate in it, as that of the client has, too, beside its key.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid): the option, the file, and why not.
pub(crate) fn check(options: &ClientOptions) -> Result<(), StoreError> {
    let Some(Tls::Enabled(files)) = &options.tls else {
        return Ok(());
    };
    for (option, path) in [
        ("tlsCAFile", &files.ca_file_path),
        ("tlsCertificateKeyFile", &files.cert_key_file_path),
    ] {
        let Some(path) = path else { continue };
        if let Some(why) = why_useless(path) {
            let shown = path.display().to_string();
            return Err(invalid(&format!(
                "{option} {}: {why}; name a file with a certificate in PEM",
                shown.escape_debug()
            )));
        }
    }
    Ok(())
}

fn why_useless(path: &Path) -> Option<String> {
    match begin_of_file(path, FILE_BYTES_MAX) {
        Ok(begin) if String::from_utf8_lossy(&begin).contains("-----BEGIN CERTIFICATE-----") => None,
        Ok(_) => Some("it holds no certificate".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}
