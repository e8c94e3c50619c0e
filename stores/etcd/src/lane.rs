//! Calls on a connection that is replaced when it is of no use any more.

use crate::connection::Connection;
use crate::dial::Members;
use crate::fault::Failure;
use crate::wire::lease::{LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use crate::wire::{Answer, path};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::StoreError;
use tenure_remote::{Dial, Link};

/// How long one call may take beyond connecting: the store's own bound, beside the engine's.
pub(crate) const CALL_TIME_MAX: Duration = Duration::from_secs(3);

/// One connection at a time, made when it is needed.
pub(crate) struct Lane(Link<Members>);

impl Dial for Members {
    type Connection = Connection;

    async fn dial(&self) -> Result<Connection, StoreError> {
        let connection = self.connect_to_any().await.map_err(Failure::of_dial)?;
        self.agree_on_cluster(&connection).await?;
        Ok(connection)
    }

    /// Its end is known by the call that fails of it.
    fn is_over(_connection: &Connection) -> bool {
        false
    }

    fn leave(&self, connection: &Connection) {
        self.pass_over(&connection.host);
    }
}

impl Lane {
    pub(crate) fn new(members: Arc<Members>) -> Self {
        Self(Link::new(members))
    }

    /// One request and one answer, as [`call`](Self::call).
    pub(crate) async fn unary<Asked, Answered>(
        &self,
        path: &'static str,
        request: &Asked,
    ) -> Result<Answered, Failure>
    where
        Asked: prost::Message + Clone + Send + Sync + 'static,
        Answered: Answer,
    {
        let call = |connection: Connection| {
            let request = request.clone();
            async move { connection.unary(path, request).await.map_err(Failure::Status) }
        };
        self.call(call).await
    }

    /// Extends a session, as [`call`](Self::call).
    pub(crate) async fn keep_alive(&self, session: i64) -> Result<LeaseKeepAliveResponse, Failure> {
        let call = |connection: Connection| async move {
            let requests = tokio_stream::once(LeaseKeepAliveRequest { id: session });
            let streaming = connection.stream(path::LEASE_KEEP_ALIVE, requests).await;
            let mut answers = streaming.map_err(Failure::of_stream)?;
            let answer = answers.message().await.map_err(Failure::of_stream)?;
            answer.ok_or_else(|| {
                Failure::Status(tonic::Status::unavailable("the stream ended without an answer"))
            })
        };
        self.call(call).await
    }

    /// Makes a call, connecting if need be, in bounded time.
    ///
    /// # Errors
    /// [`Failure`]. Where the token has run out, or the connection had ended, another is had, and the call
    /// made again: it was not applied.
    pub(crate) async fn call<T, Called>(&self, call: impl Fn(Connection) -> Called) -> Result<T, Failure>
    where
        Called: Future<Output = Result<T, Failure>>,
    {
        match self.call_once(&call).await {
            Err(failure) if failure.is_token() || failure.is_unsent() => self.call_once(&call).await,
            answer => answer,
        }
    }

    /// Makes a call on the connection of the moment, which may be let go of for it.
    async fn call_once<T, Called>(&self, call: impl Fn(Connection) -> Called) -> Result<T, Failure>
    where
        Called: Future<Output = Result<T, Failure>>,
    {
        let open = self.0.open().await.map_err(Failure::Undialled)?;
        let mut waiting = self.0.wait_on(&open);
        let calling = tokio::time::timeout(CALL_TIME_MAX, call(open.connection.clone()));
        let answer = calling.await.unwrap_or(Err(Failure::Late));
        match &answer {
            // The member is as good as any: it wants another token.
            Err(failure) if failure.is_token() => {
                waiting.answered();
                self.0.discard(&open);
            }
            Err(failure) if failure.ends_connection() => {
                if self.0.discard(&open) {
                    self.0.dial().leave(&open.connection);
                }
            }
            Ok(_) | Err(_) => waiting.answered(),
        }
        answer
    }
}
