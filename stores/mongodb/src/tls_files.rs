//! What a URL says of TLS: the files that it names for the driver, which opens whatever is there, and passes
//! over what it cannot read.

use crate::url::invalid;
use mongodb::options::{ClientOptions, Tls};
use tenure_core::StoreError;
use tenure_remote::read_certificates;

/// That the server is verified, and each file a plain one with a certificate in it, as that of the client
/// has, too, beside its key.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid): the option, or it with the file and why not.
pub(crate) fn check(options: &ClientOptions) -> Result<(), StoreError> {
    let Some(Tls::Enabled(files)) = &options.tls else {
        return Ok(());
    };
    if files.allow_invalid_certificates == Some(true) {
        return Err(invalid(
            "the MongoDB URL says tlsInsecure or tlsAllowInvalidCertificates, and anybody could stand in for the server: remove the \
             option, and name the roots that have signed its certificate by tlsCAFile",
        ));
    }
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
