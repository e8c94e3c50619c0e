//! Certificates for servers and clients of tests.

use crate::ScratchDir;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

/// A certificate for the name `localhost` alone, and no address, that nobody else has signed, and its key, in
/// PEM files.
pub struct SelfSigned {
    /// The certificate's file, which is its own root as well.
    pub file: String,
    /// The key's file.
    pub key: String,
    /// A file of both, as MongoDB wants them.
    pub both: String,
    use_as: Use,
    _folder: ScratchDir,
}

/// What a certificate may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// To be shown, and to be named as the root.
    Any,
    /// To sign others alone (CA:TRUE), as `openssl req -x509` makes it.
    Signing,
}

impl SelfSigned {
    /// Whose it is: what servers that know users by their certificates take for the user's name.
    pub const COMMON_NAME: &str = "rcgen self signed cert";

    /// Makes one. `label` is a part of its folder's name, which goes when this is dropped.
    ///
    /// # Panics
    /// If it cannot be made, or written.
    #[must_use]
    pub fn new(label: &str) -> Self {
        Self::of(label, Use::Any)
    }

    /// The same of one that is made to sign others.
    ///
    /// # Panics
    /// If it cannot be made, or written.
    #[must_use]
    pub fn signing(label: &str) -> Self {
        Self::of(label, Use::Signing)
    }

    fn of(label: &str, use_as: Use) -> Self {
        let folder = ScratchDir::new(label);
        let path = |name| folder.join(name).display().to_string();
        let made = Self {
            both: path("both.pem"),
            file: path("certificate.pem"),
            key: path("key.pem"),
            use_as,
            _folder: folder,
        };
        made.renew();
        made
    }

    /// Puts another certificate and its key into the same files.
    ///
    /// # Panics
    /// If it cannot be made, or written.
    pub fn renew(&self) {
        let names = ["localhost".to_owned()];
        let mut wanted = CertificateParams::new(names).expect("the name is one");
        if self.use_as == Use::Signing {
            wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let signing_key = KeyPair::generate().expect("a key is made");
        let made = wanted
            .self_signed(&signing_key)
            .expect("a certificate of a fixed name is made");
        let (certificate, key) = (made.pem(), signing_key.serialize_pem());
        for (path, text) in [
            (&self.both, format!("{certificate}{key}")),
            (&self.file, certificate),
            (&self.key, key),
        ] {
            std::fs::write(path, text).expect("a file is written");
        }
    }
}
