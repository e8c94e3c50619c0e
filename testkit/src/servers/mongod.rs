//! A standalone `mongod`.

use super::node::{Node, NodeOptions};
use super::users::User;
use crate::certificate::SelfSigned;
use crate::error::Error;

/// A standalone MongoDB server on a free loopback port, killed and cleaned up on drop.
///
/// It has no change streams, transactions or retryable writes; for those a [`ReplicaSet`](crate::ReplicaSet)
/// of one node costs little more.
pub struct Mongod {
    node: Node,
}

impl Mongod {
    /// Starts a server that lets everybody in, and waits until it answers.
    ///
    /// # Errors
    /// [`Error::NotInstalled`], or why the server did not start.
    pub async fn start() -> Result<Mongod, Error> {
        let node = Node::start(NodeOptions::default()).await?;
        Ok(Mongod { node })
    }

    /// Starts a server that demands credentials; [`administrator`](Mongod::administrator) may do everything.
    ///
    /// # Errors
    /// As [`start`](Mongod::start).
    pub async fn with_auth() -> Result<Mongod, Error> {
        let mut node = Node::start(NodeOptions {
            authentication: true,
            ..NodeOptions::default()
        })
        .await?;
        let administrator = User::administrator();
        // The server lets the first user be made without credentials, from loopback only.
        node.create_user(&administrator, &[("root", "admin")]).await?;
        node.act_as(administrator);
        Ok(Mongod { node })
    }

    /// Starts a server that shows `own` to whoever encrypts, and demands a certificate that `of_clients` has
    /// signed.
    ///
    /// # Errors
    /// As [`start`](Mongod::start).
    pub async fn with_tls(own: &SelfSigned, of_clients: &SelfSigned) -> Result<Mongod, Error> {
        let node = Node::start(NodeOptions {
            tls: Some((own.both.clone(), of_clients.file.clone())),
            ..NodeOptions::default()
        })
        .await?;
        Ok(Mongod { node })
    }

    /// `127.0.0.1:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.node.address()
    }

    /// Connection string, with the administrator's credentials if the server demands any.
    #[must_use]
    pub fn uri(&self) -> String {
        self.node.direct_uri(self.node.user())
    }

    /// Connection string with these credentials, be they right or wrong.
    #[must_use]
    pub fn uri_as(&self, user: &User) -> String {
        self.node.direct_uri(Some(user))
    }

    /// Connection string without credentials.
    #[must_use]
    pub fn uri_without_credentials(&self) -> String {
        self.node.direct_uri(None)
    }

    /// The administrator of a server that was started [`with_auth`](Mongod::with_auth).
    #[must_use]
    pub fn administrator(&self) -> Option<&User> {
        self.node.user()
    }

    /// Creates a user of the `admin` database. `roles` are pairs of a role and the database it is for.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's answer.
    pub async fn create_user(
        &self,
        name: &str,
        password: &str,
        roles: &[(&str, &str)],
    ) -> Result<User, Error> {
        let user = User::new(name, password);
        self.node.create_user(&user, roles).await?;
        Ok(user)
    }

    /// Process number, or nothing after [`kill`](Mongod::kill).
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.node.pid()
    }

    /// Stops the server with SIGSTOP: connections stay open, nothing is answered.
    ///
    /// # Panics
    /// When it was killed.
    pub fn freeze(&mut self) {
        self.node.freeze();
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// When it was killed.
    pub fn thaw(&mut self) {
        self.node.thaw();
    }

    /// Kills the server with SIGKILL. Its port and its data stay, but for writes of the last 100 ms that did
    /// not ask to be journaled (`j: true` or `w: "majority"`).
    pub fn kill(&mut self) {
        self.node.kill();
    }

    /// Kills the server if it runs, starts it on the same port and data, and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.node.kill();
        self.node.launch().await
    }
}
