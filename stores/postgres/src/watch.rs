//! Watching by `LISTEN`: one connection of the store's, shared by all its watches.

use crate::fault::{Deed, store_error, timed_out};
use crate::lane::{Dial, Live};
use crate::schema::{channel, quoted};
use crate::site::{Site, Typed};
use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{
    Answer, Change, Fault, FencingToken, LeaseName, Scope, StoreError, Watch, WatchEvent, WatchSource,
};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

/// Events that may wait for a slow reader. When it is full, the reader is told of a gap instead.
const EVENTS_WAITING_MAX: usize = 256;

/// Watches of one store at a time.
const WATCHES_MAX: usize = 1_024;

/// How often the silent connection is asked whether it is still there, and how long it may take to say so.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long connecting waits for its own notification. Behind a transaction-mode pooler it never comes.
const PROOF_TIME_MAX: Duration = Duration::from_millis(1_500);

type Event = Result<WatchEvent, StoreError>;

/// The connection that listens. It is not healed: its end ends its watches, and the next watch makes another.
pub(crate) struct Listener {
    live: Arc<Live>,
    audience: Arc<Audience>,
    heartbeat: AbortHandle,
}

impl Listener {
    /// Connects and listens: every change after this is told.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn open(dial: &Dial) -> Result<Arc<Self>, StoreError> {
        let opening = async {
            let connecting = dial.url.config.connect(dial.connector.clone()).await;
            let (client, mut connection) =
                connecting.map_err(|error| store_error(&error, Deed::Read, "the watch", &dial.place))?;
            let audience = Arc::new(Audience::new(&dial.place));
            let told = Arc::clone(&audience);
            let driver = tokio::spawn(async move {
                while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                    if let AsyncMessage::Notification(notification) = message {
                        told.tell(notification.payload());
                    }
                }
                told.close();
            });
            let live = Arc::new(Live::new(client, driver.abort_handle()));
            let listen = format!("LISTEN {}", quoted(&channel(&dial.url.schema)));
            let listening = live.client.batch_execute(&listen).await;
            listening.map_err(|error| store_error(&error, Deed::Read, "the watch", &dial.place))?;
            let heartbeat = tokio::spawn(beat(Arc::clone(&live), Arc::clone(&audience))).abort_handle();
            Ok(Arc::new(Self {
                live,
                audience,
                heartbeat,
            }))
        };
        let late = |_| timed_out(Deed::Read, "the watch", &dial.place, dial.time_max);
        tokio::time::timeout(dial.time_max, opening).await.map_err(late)?
    }

    /// Whether it still answers.
    async fn answers(&self) -> bool {
        self.audience.is_open() && answers(&self.live).await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

async fn beat(live: Arc<Live>, audience: Arc<Audience>) {
    while audience.is_open() {
        tokio::time::sleep(HEARTBEAT).await;
        if !answers(&live).await {
            audience.close();
        }
    }
}

async fn answers(live: &Live) -> bool {
    let asked = tokio::time::timeout(HEARTBEAT, live.client.batch_execute(""));
    matches!(asked.await, Ok(Ok(())))
}

impl Site {
    /// Finds out whether notifications arrive, by one of its own: sent on one connection, waited for on another.
    ///
    /// # Errors
    /// If the server cannot be asked. That nothing arrives is no error: then watching is absent.
    pub(crate) async fn prove_watch(&mut self) -> Result<(), StoreError> {
        let listener = Listener::open(&self.dial).await?;
        let proof = format!("proof {:016x}", RandomState::new().build_hasher().finish());
        let arrived = listener.audience.expect_proof(&proof);
        let channel = channel(&self.dial.url.schema);
        let parameters: [Typed<'_>; 2] = [(&channel, Type::TEXT), (&proof, Type::TEXT)];
        self.ask(Deed::Read, "the watch", "SELECT pg_notify($1, $2)", &parameters)
            .await?;
        if tokio::time::timeout(PROOF_TIME_MAX, arrived.notified())
            .await
            .is_ok()
        {
            self.watch = WatchSource::Push;
            *self.listener.lock().await = Some(listener);
        } else {
            tracing::info!(
                place = %self.place,
                "notifications do not arrive, as behind a transaction-mode pooler: candidates wait for the remaining time; \
                 add listen=off to the URL to connect faster, or let Tenure go round the pooler"
            );
        }
        Ok(())
    }

    /// Starts a watch; answers when it is in place.
    pub(crate) async fn open_watch(&self, scope: Scope) -> Result<ListenWatch, StoreError> {
        if self.watch != WatchSource::Push {
            let message = format!(
                "{} cannot be watched: notifications do not arrive through a transaction-mode pooler, or listen=off; wait by \
                 the remaining time, or give a URL that goes round the pooler",
                self.place
            );
            return Err(StoreError::not_applied(Fault::Unsupported, message));
        }
        let mut slot = self.listener.lock().await;
        let standing = match slot.take() {
            Some(listener) if listener.answers().await => Some(listener),
            Some(_) | None => None,
        };
        let listener = match standing {
            Some(listener) => listener,
            None => Listener::open(&self.dial).await?,
        };
        *slot = Some(Arc::clone(&listener));
        drop(slot);
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let missed = Arc::new(AtomicBool::new(false));
        let place = self.place.clone();
        listener.audience.admit(Listening {
            scope,
            sender,
            missed: Arc::clone(&missed),
        })?;
        Ok(ListenWatch {
            events,
            missed,
            place,
            _listener: listener,
        })
    }
}

/// Those who listen.
struct Audience {
    place: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Nobody is told anything any more.
    closed: bool,
    watches: Vec<Listening>,
    proof: Option<(String, Arc<Notify>)>,
}

struct Listening {
    scope: Scope,
    sender: mpsc::Sender<WatchEvent>,
    missed: Arc<AtomicBool>,
}

impl Audience {
    fn new(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        !self.lock().closed
    }

    /// Ends every watch: dropping the sender's end tells the reader.
    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.watches.clear();
    }

    fn expect_proof(&self, proof: &str) -> Arc<Notify> {
        let arrived = Arc::new(Notify::new());
        self.lock().proof = Some((proof.to_owned(), Arc::clone(&arrived)));
        arrived
    }

    fn admit(&self, watch: Listening) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.watches.retain(|watch| !watch.sender.is_closed());
        if state.closed {
            let message = format!("the watch at {} ended as it began; start a new one", self.place);
            return Err(StoreError::not_applied(Fault::Unreachable, message));
        }
        if state.watches.len() >= WATCHES_MAX {
            let message = format!(
                "{WATCHES_MAX} watches of {} are open already; end one, or watch a prefix instead of each name",
                self.place
            );
            return Err(StoreError::not_applied(Fault::Busy, message));
        }
        state.watches.push(watch);
        Ok(())
    }

    fn tell(&self, payload: &str) {
        let mut state = self.lock();
        if let Some((proof, arrived)) = &state.proof
            && proof == payload
        {
            // Kept for the one who waits, also if it begins to wait later.
            arrived.notify_one();
            return;
        }
        let event = event(payload);
        state.watches.retain(|watch| {
            let concerned = match &event {
                Some(WatchEvent::Changed { name, .. }) => watch.scope.covers(name),
                Some(WatchEvent::Gap) => true,
                None => return !watch.sender.is_closed(),
            };
            match (&event, concerned) {
                (Some(event), true) => match watch.sender.try_send(event.clone()) {
                    Err(mpsc::error::TrySendError::Full(_)) => {
                        watch.missed.store(true, Ordering::SeqCst);
                        true
                    }
                    Err(mpsc::error::TrySendError::Closed(_)) => false,
                    Ok(()) => true,
                },
                _ => true,
            }
        });
    }
}

/// What a notification says; `None` for one of another program, or of a later version of this one.
pub(crate) fn event(payload: &str) -> Option<WatchEvent> {
    if payload == "gap" {
        return Some(WatchEvent::Gap);
    }
    let mut parts = payload.splitn(3, ' ');
    let change = match parts.next()? {
        "vacated" => Change::Vacated,
        "taken" => Change::Taken,
        "asked" => Change::Asked,
        _ => return None,
    };
    let token: i64 = parts.next()?.parse().ok()?;
    Some(WatchEvent::Changed {
        name: LeaseName::new(parts.next()?).ok()?,
        change,
        token: FencingToken::from_signed(token).ok(),
    })
}

/// One watch.
pub(crate) struct ListenWatch {
    events: mpsc::Receiver<WatchEvent>,
    missed: Arc<AtomicBool>,
    place: String,
    _listener: Arc<Listener>,
}

impl Watch for ListenWatch {
    fn next(&mut self) -> Answer<'_, Event> {
        Box::pin(async move {
            if self.events.is_empty() && self.missed.swap(false, Ordering::SeqCst) {
                return Ok(WatchEvent::Gap);
            }
            self.events.recv().await.ok_or_else(|| {
                let message = format!(
                    "the watch at {} is over; start a new one, then look again",
                    self.place
                );
                StoreError::not_applied(Fault::Unreachable, message)
            })
        })
    }
}
