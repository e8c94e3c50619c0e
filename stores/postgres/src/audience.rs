//! Those who listen on one connection, and what they are told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::{Change, Fault, FencingToken, LeaseName, Scope, StoreError, WatchEvent};
use tokio::sync::{Notify, mpsc};

/// Watches of one store at a time.
const WATCHES_MAX: usize = 1_024;

/// Those who listen.
pub(crate) struct Audience {
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

pub(crate) struct Listening {
    pub(crate) scope: Scope,
    pub(crate) sender: mpsc::Sender<WatchEvent>,
    pub(crate) missed: Arc<Missed>,
}

/// Whether an event found the queue of a watch full.
#[derive(Default)]
pub(crate) struct Missed {
    pub(crate) is_so: AtomicBool,
    /// The reader may have emptied the queue before it was noted, and wait for the next event by then.
    pub(crate) noted: Notify,
}

impl Missed {
    pub(crate) fn note(&self) {
        self.is_so.store(true, Ordering::SeqCst);
        self.noted.notify_one();
    }
}

impl Audience {
    pub(crate) fn new(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.lock().closed
    }

    /// Ends every watch: dropping the sender's end tells the reader.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.watches.clear();
    }

    pub(crate) fn expect_proof(&self, proof: &str) -> Arc<Notify> {
        let arrived = Arc::new(Notify::new());
        self.lock().proof = Some((proof.to_owned(), Arc::clone(&arrived)));
        arrived
    }

    pub(crate) fn admit(&self, watch: Listening) -> Result<(), StoreError> {
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

    pub(crate) fn tell(&self, payload: &str) {
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
                        watch.missed.note();
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
