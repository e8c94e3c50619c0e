//! One connection that is replaced when it breaks. The driver's own never heals.

use crate::dial::{Dial, about};
use crate::kept::Kept;
use crate::shared::{Shared, Standing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tenure_core::StoreError;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::AbortHandle;
use tokio_postgres::Client;

/// A connection in use. Closed when its last user lets go.
pub(crate) struct Live {
    pub(crate) client: Client,
    /// The process that greeted; see [`greeted_by`](crate::direct::greeted_by).
    pub(crate) backend: Option<i32>,
    /// The cluster that each statement is [bound to](crate::one_cluster::bound_to): behind a pooler alone,
    /// where a statement may come to another server than the one that was asked for it.
    pub(crate) bound_to: Option<i64>,
    pub(crate) kept: Kept,
    /// A request was given up unanswered, so the other side may be gone without a word.
    suspect: AtomicBool,
    /// Requests that are under way or wait for their turn.
    wanted: AtomicUsize,
    /// One request at a time. Whoever leaves a pooler with several under way may leave the answer to one of
    /// them to whoever gets the server's connection next: PgBouncer takes that for free at the first answer.
    /// What is prepared beside it is prepared where no pooler is.
    turn: Arc<Mutex<()>>,
    driver: AbortHandle,
    dial: Arc<Dial>,
    /// Whose it is: a place in the URL's list.
    host: usize,
}

impl Live {
    pub(crate) fn new(
        client: Client,
        backend: Option<i32>,
        bound_to: Option<i64>,
        driver: AbortHandle,
        dial: &Arc<Dial>,
        host: usize,
    ) -> Self {
        Self {
            client,
            backend,
            bound_to,
            kept: Kept::default(),
            suspect: AtomicBool::new(false),
            wanted: AtomicUsize::new(0),
            turn: Arc::default(),
            driver,
            dial: Arc::clone(dial),
            host,
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.suspect.load(Ordering::Relaxed)
    }

    /// Whether its host is one that the store has left for another.
    pub(crate) fn is_left_behind(&self) -> bool {
        self.dial.has_left(self.host)
    }

    /// Makes the next request use another connection.
    fn give_up(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A silent connection would be waited for without end.
        self.driver.abort();
    }
}

/// One that wants a connection, for as long as this lives.
struct Wanting(Arc<Live>);

impl Wanting {
    fn new(live: Arc<Live>) -> Self {
        live.wanted.fetch_add(1, Ordering::Relaxed);
        Self(live)
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request under way. Dropped without an answer, it leaves its connection suspect, and its host.
pub(crate) struct UnderWay {
    live: Wanting,
    answered: bool,
    // Given to the next when it is known whether the connection is of use.
    _turn: OwnedMutexGuard<()>,
}

impl UnderWay {
    /// Waits for its turn on this connection.
    pub(crate) async fn begin(live: Arc<Live>) -> Self {
        let turn = Arc::clone(&live.turn);
        let live = Wanting::new(live);
        Self {
            live,
            answered: false,
            _turn: turn.lock_owned().await,
        }
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live.0
    }

    pub(crate) fn client(&self) -> &Client {
        &self.live.0.client
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.live.0.is_usable()
    }

    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }

    /// There was an answer, but there will be no other on this connection.
    pub(crate) fn ended(&mut self) {
        self.answered = true;
        self.live.0.give_up();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.answered {
            let live = &self.live.0;
            live.give_up();
            live.dial.leave(live.host);
        }
    }
}

/// A place for one connection.
#[derive(Default)]
pub(crate) struct Lane(Shared<Arc<Live>>);

impl Lane {
    /// The connection, or a new one where there is none that works, when it is this request's turn. Who waits
    /// for it bounds the wait.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    pub(crate) async fn enter(&self, dial: &Arc<Dial>, what: &str) -> Result<UnderWay, StoreError> {
        let open = || {
            let dial = Arc::clone(dial);
            async move { dial.open().await }
        };
        loop {
            let live = self.0.get(|live| live.is_usable(), open);
            let mut turn = UnderWay::begin(live.await.map_err(about(what))?).await;
            if turn.is_usable() {
                return Ok(turn);
            }
            // Whoever was before it has found it broken; nothing more was asked on it.
            turn.answered();
        }
    }

    /// How many requests are under way or wait; more than any number while a connection is being made.
    pub(crate) fn load(&self) -> usize {
        match self.0.standing() {
            Standing::Empty => 0,
            Standing::UnderWay => usize::MAX,
            Standing::Made(live) => live.wanted.load(Ordering::Relaxed),
        }
    }

    /// Whether a connection is there already, or being made.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.0.standing(), Standing::Empty)
    }

    /// Lets go of the connection; the next request makes another.
    pub(crate) fn close(&self) {
        self.0.forget();
    }
}
