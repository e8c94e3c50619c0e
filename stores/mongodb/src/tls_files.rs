//! The files that a URL names for the driver, which opens whatever is there, and passes over what it cannot read.

use mongodb::options::{ClientOptions, Tls};
use tenure_core::StoreError;
use tenure_remote::read_certificates;

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
        if let Some(path) = path {
            read_certificates(option, path)?;
        }
    }
    Ok(())
}
