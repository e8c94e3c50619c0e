//! Certificates for servers and clients of tests.

use crate::ScratchDir;

/// A certificate for the name `localhost` alone, and no address, that nobody else has signed, and its key, in
/// PEM files.
pub struct SelfSigned {
    /// The certificate's file, which is its own root as well.
    pub file: String,
    /// The key's file.
    pub key: String,
    /// A file of both, as MongoDB wants them.
    pub both: String,
    _folder: ScratchDir,
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
        let folder = ScratchDir::new(label);
        let path = |name| folder.join(name).display().to_string();
        let made = Self {
            both: path("both.pem"),
            file: path("certificate.pem"),
            key: path("key.pem"),
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
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate of a fixed name is made");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        for (path, text) in [
            (&self.both, format!("{certificate}{key}")),
            (&self.file, certificate),
            (&self.key, key),
        ] {
            std::fs::write(path, text).expect("a file is written");
        }
    }
}
