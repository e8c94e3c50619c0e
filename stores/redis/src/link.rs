//! One connection to the server, made when it is needed and replaced when it is of no use any more.

use crate::connect::{Dialled, Target};
use crate::fault::{Deed, code, ends_connection, store_error};
use crate::reply::Reply;
use crate::script::{Arguments, Script};
use redis::{Cmd, RedisError, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};

/// How long requests must have waited in vain, with no answer on their connection meanwhile, for the connection to count
/// as silent when one of them is given up.
const SILENCE: Duration = Duration::from_millis(100);

/// A connection that heals: the driver's own never does, and does not notice that nobody answers.
pub(crate) struct Link {
    target: Target,
    open: Mutex<Option<Open>>,
    /// Only one request dials; the others wait for its connection.
    dialling: tokio::sync::Mutex<()>,
    dials: AtomicU64,
}

/// The connection in use.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) dialled: Dialled,
    number: u64,
    patience: Arc<Mutex<Patience>>,
}

/// How long a connection has been waited for in vain. It counts what all have waited, as each may have less time than
/// would prove the connection silent.
struct Patience {
    /// When an answer came last, or a request was given up: what was before is counted, or counts no more.
    since: Instant,
    waited: Duration,
}

impl Patience {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            waited: Duration::ZERO,
        }
    }

    /// A request was given up that was sent then. Time that several have waited counts once.
    fn wait_in_vain(&mut self, sent: Instant) {
        self.waited += self.since.max(sent).elapsed();
        self.since = Instant::now();
    }
}

impl Link {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            open: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
            dials: AtomicU64::new(0),
        }
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn open(&self) -> Result<Open, StoreError> {
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let _turn = self.dialling.lock().await;
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let dialled = self.target.dial().await.map_err(|error| self.passing(error))?;
        let open = Open {
            dialled,
            number: self.dials.fetch_add(1, Ordering::Relaxed),
            patience: Arc::new(Mutex::new(Patience::new())),
        };
        *lock(&self.open) = Some(open.clone());
        Ok(open)
    }

    /// A replica where a primary was is a fail-over under way, and nothing that only a person can mend.
    fn passing(&self, mut error: StoreError) -> StoreError {
        if error.fault == Fault::ReadOnly && self.dials.load(Ordering::Relaxed) > 0 {
            error.fault = Fault::Unreachable;
        }
        error
    }

    fn usable(&self) -> Option<Open> {
        lock(&self.open)
            .clone()
            .filter(|open| !open.dialled.ended.load(Ordering::Relaxed))
    }

    /// Lets go of this connection, if it is still the one in use.
    fn discard(&self, number: u64) {
        let mut open = lock(&self.open);
        if open.as_ref().is_some_and(|open| open.number == number) {
            *open = None;
        }
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

    async fn ask(&self, open: &Open, command: Cmd) -> Result<Value, RedisError> {
        let mut connection = open.dialled.connection.clone();
        let mut waiting = Waiting {
            link: self,
            open,
            sent: Instant::now(),
            answered: false,
        };
        let answer = command.query_async::<Value>(&mut connection).await;
        waiting.answered = true;
        *lock(&open.patience) = Patience::new();
        if answer.as_ref().is_err_and(ends_connection) {
            self.discard(open.number);
        }
        answer
    }
}

/// A request under way. Given up, it may take the connection with it: who gives up first is mostly the engine,
/// whose patience is shorter than any time-out here, and a silent connection would be used for ever.
struct Waiting<'a> {
    link: &'a Link,
    open: &'a Open,
    sent: Instant,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let mut patience = lock(&self.open.patience);
        patience.wait_in_vain(self.sent);
        if patience.waited >= SILENCE {
            self.link.discard(self.open.number);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
