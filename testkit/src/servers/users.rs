//! Users of a server with authentication.

use std::fmt::Write as _;

/// A user of a server that was started with authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its password, in the clear: it guards a scratch server on loopback.
    pub password: String,
}

impl User {
    /// A user; it is not created on any server by this alone, which makes it good for wrong credentials.
    #[must_use]
    pub fn new(name: &str, password: &str) -> User {
        User {
            name: name.to_owned(),
            password: password.to_owned(),
        }
    }

    /// The administrator of every server the kit starts with authentication.
    pub(crate) fn administrator() -> User {
        User::new("administrator", "scratch")
    }

    /// `name:password@`, escaped for a connection string.
    pub(crate) fn prefix(&self) -> String {
        format!("{}:{}@", escape(&self.name), escape(&self.password))
    }
}

fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string never fails");
        }
        out
    })
}

/// A connection string to `hosts`, with credentials of a user of the `admin` database if there is one.
pub(crate) fn connection_string(user: Option<&User>, hosts: &str, option: &str) -> String {
    match user {
        Some(user) => format!("mongodb://{}{hosts}/?{option}&authSource=admin", user.prefix()),
        None => format!("mongodb://{hosts}/?{option}"),
    }
}
