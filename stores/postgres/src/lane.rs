//! One connection that is replaced when it breaks. The driver's own never heals.

use crate::dial::{Dial, about};
use crate::shared::{Shared, Standing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tenure_core::StoreError;
use tokio::task::AbortHandle;
use tokio_postgres::Client;

/// A connection in use. Closed when its last user lets go.
pub(crate) struct Live {
    pub(crate) client: Client,
    /// A request was given up unanswered, so the other side may be gone without a word.
    suspect: AtomicBool,
    in_flight: AtomicUsize,
    driver: AbortHandle,
    dial: Arc<Dial>,
    /// Whose it is: a place in the URL's list.
    host: usize,
}

impl Live {
    pub(crate) fn new(client: Client, driver: AbortHandle, dial: &Arc<Dial>, host: usize) -> Self {
        Self {
            client,
            suspect: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            driver,
            dial: Arc::clone(dial),
            host,
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.suspect.load(Ordering::Relaxed)
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

/// A request under way. Dropped without an answer, it leaves its connection suspect, and its host.
pub(crate) struct UnderWay {
    live: Arc<Live>,
    answered: bool,
}

impl UnderWay {
    pub(crate) fn begin(live: Arc<Live>) -> Self {
        live.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            live,
            answered: false,
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.live.client
    }

    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }

    /// There was an answer, but there will be no other on this connection.
    pub(crate) fn ended(&mut self) {
        self.answered = true;
        self.live.give_up();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.live.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.answered {
            self.live.give_up();
            self.live.dial.leave(self.live.host);
        }
    }
}

/// A place for one connection.
#[derive(Default)]
pub(crate) struct Lane(Shared<Arc<Live>>);

impl Lane {
    /// The connection, or a new one where there is none that works.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    pub(crate) async fn enter(&self, dial: &Arc<Dial>, what: &str) -> Result<UnderWay, StoreError> {
        let open = || {
            let dial = Arc::clone(dial);
            async move { dial.open().await }
        };
        let live = self.0.get(|live| live.is_usable(), open);
        Ok(UnderWay::begin(live.await.map_err(about(what))?))
    }

    /// How many requests are under way; more than any number while a connection is being made.
    pub(crate) fn load(&self) -> usize {
        match self.0.standing() {
            Standing::Empty => 0,
            Standing::UnderWay => usize::MAX,
            Standing::Made(live) => live.in_flight.load(Ordering::Relaxed),
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
