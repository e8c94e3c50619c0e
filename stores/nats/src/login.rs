//! What is shown to a server so that it lets in.

use crate::credentials::Credentials;
use crate::url::Login;
use async_nats::{Auth, AuthError};

impl Login {
    /// What to look at when it was refused.
    pub(crate) fn way_out(&self) -> String {
        match self {
            Self::File(path) => format!(
                "check the credentials in {}: whether they are of this server's account, have not expired, and were not revoked",
                path.display()
            ),
            Self::Nobody => "name a user and a password, a token, or creds in the URL".to_owned(),
            Self::User { .. } | Self::Token(_) => "check user and password, or the token".to_owned(),
        }
    }
}

/// What is shown to a server that has greeted. Holds secrets, so it is never shown: no `Debug`.
pub(crate) struct Pass {
    words: Auth,
    /// In place of words.
    key: Option<Credentials>,
}

impl Pass {
    /// What this login shows. A file is read anew each time: it is replaced before what it says expires.
    ///
    /// # Errors
    /// Why the file of credentials is of no use.
    pub(crate) fn of(login: &Login) -> Result<Self, String> {
        let (mut words, mut key) = (Auth::new(), None);
        match login {
            Login::Nobody => {}
            Login::User { name, password } => {
                words.username = Some(name.clone());
                words.password = Some(password.clone());
            }
            Login::Token(token) => words.token = Some(token.clone()),
            Login::File(path) => key = Some(Credentials::read(path)?),
        }
        Ok(Self { words, key })
    }

    /// For a server that has greeted with this number, which it gives once.
    ///
    /// # Errors
    /// The key does not sign.
    pub(crate) fn shown(&self, number: &[u8]) -> Result<Auth, AuthError> {
        match &self.key {
            Some(credentials) => credentials.shown(number),
            None => Ok(self.words.clone()),
        }
    }
}
