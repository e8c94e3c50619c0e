//! A file of credentials: a user's JWT and the seed of its key, as `nsc` writes them, or the seed alone.

use async_nats::{Auth, AuthError};
use nkeys::{KeyPair, KeyPairType};
use std::path::Path;
use tenure_remote::begin_of_file;

/// Largest file that is read, in bytes. One with many permissions has some thousands.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Who connects, by a key of its own. Holds a secret, so it is never shown: no `Debug`.
pub(crate) struct Credentials {
    /// What an account says of its user. `None`: the server knows the key itself.
    jwt: Option<String>,
    key: KeyPair,
}

impl Credentials {
    /// Reads a file.
    ///
    /// # Errors
    /// Why not, without anything that is in it.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = begin_of_file(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| format!("cannot read {shown}: {error}"))?;
        let text = String::from_utf8_lossy(&text);
        Self::parse(&text).ok_or_else(|| {
            format!(
                "{shown} holds no credentials of a user: a JWT and a seed that begins with SU, as `nsc generate creds` writes them, \
                 or such a seed alone"
            )
        })
    }

    /// The values stand each below a line of its own that says what it is. Without such lines it is a seed
    /// alone.
    fn parse(text: &str) -> Option<Self> {
        let value_below = |what: &str| {
            let mut lines = text.lines().map(str::trim);
            let begins =
                |line: &str| line.starts_with("---") && line.contains("BEGIN") && line.contains(what);
            lines.find(|line| begins(line))?;
            lines.find(|line| !line.is_empty())
        };
        let jwt = value_below("JWT").map(str::to_owned);
        let seed = value_below("SEED").unwrap_or_else(|| text.trim());
        let key = KeyPair::from_seed(seed).ok()?;
        (key.key_pair_type() == KeyPairType::User).then_some(Self { jwt, key })
    }

    /// What is shown to a server that has greeted with this number, which it gives once.
    ///
    /// # Errors
    /// The key does not sign.
    pub(crate) fn shown(&self, number: &[u8]) -> Result<Auth, AuthError> {
        let mut auth = Auth::new();
        auth.signature = Some(self.key.sign(number).map_err(AuthError::new)?);
        match &self.jwt {
            Some(jwt) => auth.jwt = Some(jwt.clone()),
            None => auth.nkey = Some(self.key.public_key()),
        }
        Ok(auth)
    }
}

#[cfg(test)]
mod tests {
    use super::Credentials;
    use nkeys::KeyPair;

    #[test]
    fn file_of_credentials_is_read_as_it_is_written_and_nothing_else_is() {
        let user = KeyPair::new_user();
        let seed = user.seed().expect("a seed");
        let file = |seed: &str| {
            format!(
                "-----BEGIN NATS USER JWT-----\r\neyJ0.eyJq.c2ln\r\n------END NATS USER JWT------\r\n\r\n*** IMPORTANT ***\r\n\
                 NKEY Seed printed below is a secret.\r\n\r\n-----BEGIN USER NKEY SEED-----\r\n{seed}\r\n------END USER NKEY SEED------\r\n"
            )
        };
        let both = Credentials::parse(&file(&seed)).expect("credentials");
        assert_eq!(both.jwt.as_deref(), Some("eyJ0.eyJq.c2ln"));
        let alone = Credentials::parse(&format!("{seed}\n")).expect("credentials");
        assert_eq!((alone.jwt, alone.key.public_key()), (None, user.public_key()));
        let account = KeyPair::new_account().seed().expect("a seed");
        let damaged = seed.replace('A', "B");
        for other in [
            account.as_str(),
            &damaged,
            &user.public_key(),
            "",
            &file(&account),
            &file(""),
        ] {
            assert!(Credentials::parse(other).is_none());
        }
    }
}
