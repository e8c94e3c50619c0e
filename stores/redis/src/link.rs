//! Commands and scripts on one connection to the server.

use crate::connect::{Dialled, Target};
use crate::fault::{Deed, code, ends_connection, store_error};
use crate::reply::Reply;
use crate::script::{Arguments, Script};
use redis::{Cmd, RedisError, Value};
use std::sync::Arc;
use tenure_core::{Fault, StoreError};
use tenure_remote::Dial;

/// The connection in use.
pub(crate) type Open = tenure_remote::Open<Dialled>;

/// A connection that heals: the driver's own never does, and does not notice that nobody answers.
pub(crate) struct Link(tenure_remote::Link<Target>);

impl Dial for Target {
    type Connection = Dialled;

    async fn dial(&self) -> Result<Dialled, StoreError> {
        self.connect().await
    }

    fn is_over(dialled: &Dialled) -> bool {
        dialled.is_over()
    }
}

impl Link {
    pub(crate) fn new(target: Target) -> Self {
        Self(tenure_remote::Link::new(Arc::new(target)))
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn open(&self) -> Result<Open, StoreError> {
        self.0.open().await.map_err(|error| self.passing(error))
    }

    /// A replica where a primary was is a fail-over under way, and nothing that only a person can mend.
    fn passing(&self, mut error: StoreError) -> StoreError {
        if error.fault == Fault::ReadOnly && self.0.was_open() {
            error.fault = Fault::Unreachable;
        }
        error
    }

    /// Runs a script. The server has it, but for the first time: then the text is sent, too.
    ///
    /// # Errors
    /// [`StoreError`] with `subject` and `place` in its message.
    pub(crate) async fn run(
        &self,
        script: &Script,
        arguments: &Arguments,
        deed: Deed,
        subject: &str,
        place: &str,
    ) -> Result<Reply, StoreError> {
        let open = self.open().await?;
        let answer = match self.ask(&open, arguments.by_hash(script)).await {
            Err(error) if code(&error) == Some("NOSCRIPT") => {
                self.ask(&open, arguments.by_text(script)).await
            }
            answer => answer,
        };
        Reply::new(answer.map_err(|error| store_error(&error, deed, subject, place))?)
    }

    /// Sends one command that changes nothing.
    ///
    /// # Errors
    /// [`StoreError`], not applied, with `subject` and `place` in its message.
    pub(crate) async fn look(&self, command: Cmd, subject: &str, place: &str) -> Result<Value, StoreError> {
        let open = self.open().await?;
        let answer = self.ask(&open, command).await;
        answer.map_err(|error| store_error(&error, Deed::Read, subject, place))
    }

    /// Has the next request dial anew.
    pub(crate) async fn hang_up(&self) {
        if let Ok(open) = self.open().await {
            self.0.discard(&open);
        }
    }

    /// Sends one command on this connection.
    pub(crate) async fn ask(&self, open: &Open, command: Cmd) -> Result<Value, RedisError> {
        let mut connection = open.connection.connection.clone();
        let mut waiting = self.0.wait_on(open);
        let answer = command.query_async::<Value>(&mut connection).await;
        waiting.answered();
        if answer.as_ref().is_err_and(ends_connection) {
            self.0.discard(open);
        }
        answer
    }
}
