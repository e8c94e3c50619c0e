//! Encrypted connections, by the same library and provider as every other store.

use crate::url::invalid;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::StoreError;
use tenure_remote::read_certificates;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a server proves who it is, once the connection is encrypted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// Not at all, as libpq's `prefer` and `require`: it keeps out who listens, not who intercepts. (A
    /// password under SCRAM is bound to the channel all the same.)
    Anybody,
    /// By a certificate for its host name, from Mozilla's roots.
    PublicRoots,
    /// By a certificate for its host name, from the roots in this file.
    RootsIn(PathBuf),
}

/// What makes the driver's connections.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid): the file of the roots cannot be read, or holds none.
pub(crate) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, StoreError> {
    // Named here, and not the process's default: another library's choice must not become ours, nor ours
    // another's.
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(&format!("TLS cannot be set up: {error}")))?;
    let config = match trust {
        Trust::Anybody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            .with_no_client_auth(),
        Trust::PublicRoots => builder
            .with_root_certificates(RootCertStore::from_iter(
                webpki_roots::TLS_SERVER_ROOTS.iter().cloned(),
            ))
            .with_no_client_auth(),
        Trust::RootsIn(path) => builder
            .with_root_certificates(roots_in(path)?)
            .with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn roots_in(path: &Path) -> Result<RootCertStore, StoreError> {
    let shown = path.display().to_string().escape_debug().to_string();
    let wrong = |why: String| {
        invalid(&format!(
            "sslrootcert {shown}: {why}; name a PEM file of certificates"
        ))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&read_certificates("sslrootcert", path)?) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("holds no certificate".to_owned()));
    }
    Ok(roots)
}

/// Takes every certificate, but still demands that the server has its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::TLS;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::server::ParsedCertificate;

    /// As many make one by hand: without extensions, and so of version 1.
    const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBJTCBywIUbAM90JUFBimYgcMCAi0gbFxJKHEwCgYIKoZIzj0EAwIwFDESMBAG\n\
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzIzMzE1MVoYDzIxMjYxMDMwMjMzMTUx\n\
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
AASR8wrT3loGx+G33usXdLIMcLflrpfdrWCsX2IxgtcKjb4jRSoMG9f8ue1mU4G+\n\
sDGFEGrS1NABEkmRDtEGP1koMAoGCCqGSM49BAMCA0kAMEYCIQDdzeLFdQE8WgFm\n\
HIUoE+2UPnnoz5X2GAJrXv46iCr2KgIhAL59YMYYFmxLwedOkqcX8Tmc/BIXEvib\n\
ssoejaIAHtTV\n\
-----END CERTIFICATE-----\n";

    /// The library reads none, whoever asks: the error says what to do.
    #[test]
    fn certificate_of_the_first_version_is_told_with_the_way_out() {
        let certificate = CertificateDer::from_pem_slice(VERSION_1.as_bytes()).unwrap();
        let error = ParsedCertificate::try_from(&certificate).map(drop).unwrap_err();
        let told = TLS.connection_failed(error);
        assert!(
            told.contains("make one of version 3") && told.contains(TLS.plain),
            "{told}"
        );
        assert!(!told.contains('\n'), "{told}");
        let other = TLS.connection_failed("invalid peer certificate: Expired");
        assert!(!other.contains("version") && other.contains("renew"), "{other}");
    }
}
