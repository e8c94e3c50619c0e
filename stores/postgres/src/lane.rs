//! One connection that is replaced when it breaks. The driver's own never heals.

use crate::fault::{Deed, store_error, timed_out};
use crate::url::StoreUrl;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::StoreError;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How connections are made.
pub(crate) struct Dial {
    pub(crate) url: StoreUrl,
    pub(crate) connector: MakeRustlsConnect,
    /// For messages; it holds no secret.
    pub(crate) place: String,
    /// How long making a connection may take in all, whatever number of addresses is tried.
    pub(crate) time_max: Duration,
}

impl Dial {
    /// Connects, and drives the connection on the calling runtime.
    ///
    /// # Errors
    /// Not applied: nothing was asked yet.
    pub(crate) async fn open(&self, what: &str) -> Result<Live, StoreError> {
        let connecting = self.url.config.connect(self.connector.clone());
        let (client, connection) = tokio::time::timeout(self.time_max, connecting)
            .await
            .map_err(|_late| timed_out(Deed::Read, what, &self.place, self.time_max))?
            .map_err(|error| store_error(&error, Deed::Read, what, &self.place))?;
        // What goes wrong on it, its requests are told.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Live::new(client, driver.abort_handle()))
    }
}

/// A connection in use. Closed when its last user lets go.
pub(crate) struct Live {
    pub(crate) client: Client,
    /// A request was given up unanswered, so the other side may be gone without a word.
    suspect: AtomicBool,
    in_flight: AtomicUsize,
    driver: AbortHandle,
}

impl Live {
    pub(crate) fn new(client: Client, driver: AbortHandle) -> Self {
        Self {
            client,
            suspect: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            driver,
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.suspect.load(Ordering::Relaxed)
    }

    /// Makes the next request use another connection.
    pub(crate) fn give_up(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A silent connection would be waited for without end.
        self.driver.abort();
    }
}

/// A request under way. Dropped without an answer, it leaves its connection suspect.
pub(crate) struct UnderWay {
    live: Arc<Live>,
    answered: bool,
}

impl UnderWay {
    fn begin(live: Arc<Live>) -> Self {
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
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.live.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.answered {
            self.live.give_up();
        }
    }
}

/// A place for one connection.
#[derive(Default)]
pub(crate) struct Lane {
    live: Mutex<Option<Arc<Live>>>,
}

impl Lane {
    /// The connection, or a new one where there is none that works.
    ///
    /// # Errors
    /// As [`Dial::open`].
    pub(crate) async fn enter(&self, dial: &Dial, what: &str) -> Result<UnderWay, StoreError> {
        let mut slot = self.live.lock().await;
        if let Some(live) = slot.as_ref().filter(|live| live.is_usable()) {
            return Ok(UnderWay::begin(Arc::clone(live)));
        }
        // Let go of first: it counts against the server's limit, and those who still wait on it keep it.
        *slot = None;
        let live = Arc::new(dial.open(what).await?);
        *slot = Some(Arc::clone(&live));
        Ok(UnderWay::begin(live))
    }

    /// How many requests are under way; more than any number while a connection is being made.
    pub(crate) fn load(&self) -> usize {
        match self.live.try_lock() {
            Ok(slot) => slot
                .as_ref()
                .map_or(0, |live| live.in_flight.load(Ordering::Relaxed)),
            Err(_being_made) => usize::MAX,
        }
    }

    /// Whether a connection is there already.
    pub(crate) fn is_open(&self) -> bool {
        self.live.try_lock().map_or(true, |slot| slot.is_some())
    }
}

impl Lane {
    /// Lets go of the connection; the next request makes another.
    pub(crate) async fn close(&self) {
        *self.live.lock().await = None;
    }
}
