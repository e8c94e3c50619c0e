//! A connection that is replaced when it is of no use any more.

use crate::dial::{Connection, Members};
use crate::fault::Failure;
use crate::wire::lease::{LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use crate::wire::path;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one call may take beyond connecting: the store's own bound, beside the engine's.
pub(crate) const CALL_TIME_MAX: Duration = Duration::from_secs(3);

/// A connection that was not heard of for so long, although somebody waited, is replaced when he gives up.
const SILENCE: Duration = Duration::from_millis(250);

/// One connection at a time, made when it is needed.
pub(crate) struct Lane {
    members: Arc<Members>,
    slot: tokio::sync::Mutex<Option<Arc<Open>>>,
}

/// A connection, and whether it was heard of.
pub(crate) struct Open {
    pub(crate) connection: Connection,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since when nothing was heard although somebody waits.
    waiting_since: Option<Instant>,
    condemned: bool,
}

impl Open {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    pub(crate) fn new(members: Arc<Members>) -> Self {
        Self {
            members,
            slot: tokio::sync::Mutex::default(),
        }
    }

    /// One call, connecting if need be, in bounded time.
    ///
    /// # Errors
    /// [`Failure`]. A token that has run out is renewed, and the call made again: it was not applied.
    pub(crate) async fn unary<Asked, Answered>(
        &self,
        path: &'static str,
        request: &Asked,
    ) -> Result<Answered, Failure>
    where
        Asked: prost::Message + Clone + Send + Sync + 'static,
        Answered: prost::Message + Default + Send + Sync + 'static,
    {
        let call = |open: Arc<Open>| {
            let request = request.clone();
            async move {
                open.connection
                    .unary(path, request)
                    .await
                    .map_err(Failure::Status)
            }
        };
        match self.call(call).await {
            Err(failure) if failure.is_token() => self.call(call).await,
            answer => answer,
        }
    }

    /// Extends a session.
    ///
    /// # Errors
    /// As [`unary`](Self::unary).
    pub(crate) async fn keep_alive(&self, session: i64) -> Result<LeaseKeepAliveResponse, Failure> {
        let call = |open: Arc<Open>| async move {
            let requests = tokio_stream::once(LeaseKeepAliveRequest { id: session });
            let streaming = open.connection.stream(path::LEASE_KEEP_ALIVE, requests).await;
            let mut answers = streaming.map_err(Failure::Status)?;
            let answer = answers.message().await.map_err(Failure::Status)?;
            answer.ok_or_else(|| {
                Failure::Status(tonic::Status::unavailable("the stream ended without an answer"))
            })
        };
        match self.call(call).await {
            Err(failure) if failure.is_token() => self.call(call).await,
            answer => answer,
        }
    }

    /// Makes a call on the connection of the moment, which it may condemn.
    pub(crate) async fn call<T, Called>(&self, call: impl FnOnce(Arc<Open>) -> Called) -> Result<T, Failure>
    where
        Called: Future<Output = Result<T, Failure>>,
    {
        let open = self.open().await?;
        open.state().waiting_since.get_or_insert_with(Instant::now);
        let mut listening = Listening {
            members: &self.members,
            open: Arc::clone(&open),
            heard: false,
        };
        let answer = match tokio::time::timeout(CALL_TIME_MAX, call(open)).await {
            Ok(answer) => answer,
            Err(_late) => Err(Failure::Late),
        };
        listening.heard = !matches!(&answer, Err(failure) if failure.ends_connection());
        if !listening.heard {
            listening.condemn();
        }
        answer
    }

    /// The connection of the moment, or a new one.
    async fn open(&self) -> Result<Arc<Open>, Failure> {
        let mut slot = self.slot.lock().await;
        if let Some(open) = slot.as_ref()
            && !open.state().condemned
        {
            return Ok(Arc::clone(open));
        }
        *slot = None;
        let connection = self.members.dial().await?;
        let state = Mutex::default();
        let open = Arc::new(Open { connection, state });
        *slot = Some(Arc::clone(&open));
        Ok(open)
    }
}

/// A call under way. When its caller gives it up, it says whether the connection was heard of meanwhile.
struct Listening<'a> {
    members: &'a Members,
    open: Arc<Open>,
    heard: bool,
}

impl Listening<'_> {
    fn condemn(&self) {
        self.open.state().condemned = true;
        self.members.pass_over(&self.open.connection.host);
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut state = self.open.state();
        if self.heard {
            state.waiting_since = None;
            return;
        }
        let silent = state
            .waiting_since
            .is_some_and(|since| since.elapsed() >= SILENCE);
        drop(state);
        if silent {
            self.condemn();
        }
    }
}
