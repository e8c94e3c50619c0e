//! One connection to the servers, made when it is needed and replaced when it is of no use any more.

use crate::connect::{Dial, Dialled, denied, denies, nobody_there};
use async_nats::{HeaderMap, Message, Request, RequestErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Certainty, Fault, StoreError};
use tenure_remote::{Deed, line, timed_out};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

/// How long one request may take beyond connecting: the store's own bound, beside the engine's.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a request must have waited in vain, with no other answer on its connection, for the connection to
/// count as silent when the request is given up.
const SILENCE: Duration = Duration::from_millis(100);

/// A connection that heals: the driver's own keeps a silent one for minutes, and holds requests back for a later one.
pub(crate) struct Link {
    dial: Arc<Dial>,
    open: Mutex<Option<Open>>,
    /// One dial for all requests; it goes on when they give up. The engine's patience may be shorter than what one dead
    /// server is given: a dial that ended with it would never come to the next server.
    dialling: tokio::sync::Mutex<Option<Dialling>>,
    dials: AtomicU64,
}

/// A dial under way, or one that ended when nobody waited for it.
type Dialling = JoinHandle<Result<Dialled, StoreError>>;

/// The connection in use.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) dialled: Dialled,
    number: u64,
    /// When the last answer came, of any request.
    answered: Arc<Mutex<Instant>>,
}

/// What is sent, and where.
pub(crate) struct Sent {
    pub(crate) to: String,
    pub(crate) headers: Option<HeaderMap>,
    pub(crate) payload: Vec<u8>,
}

impl Link {
    pub(crate) fn new(dial: Arc<Dial>) -> Self {
        Self {
            dial,
            open: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
            dials: AtomicU64::new(0),
        }
    }

    /// How it is made.
    pub(crate) fn dial(&self) -> &Arc<Dial> {
        &self.dial
    }

    /// For messages; it holds no secret.
    pub(crate) fn place(&self) -> &str {
        &self.dial.place
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    /// Not applied.
    pub(crate) async fn open(&self) -> Result<Open, StoreError> {
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let mut dialling = self.dialling.lock().await;
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let open = Open {
            dialled: self.dialled(&mut dialling).await?,
            number: self.dials.fetch_add(1, Ordering::Relaxed),
            answered: Arc::new(Mutex::new(Instant::now())),
        };
        *lock(&self.open) = Some(open.clone());
        Ok(open)
    }

    /// What the dial under way comes to, or else a new one.
    async fn dialled(&self, dialling: &mut Option<Dialling>) -> Result<Dialled, StoreError> {
        if dialling.as_ref().is_some_and(JoinHandle::is_finished)
            // What it failed of may be long past.
            && let Ok(dialled) = heard(dialling).await
            && !*dialled.ended.borrow()
        {
            return Ok(dialled);
        }
        if dialling.is_none() {
            let dial = Arc::clone(&self.dial);
            *dialling = Some(tokio::spawn(async move { dial.open().await }));
        }
        heard(dialling).await
    }

    fn usable(&self) -> Option<Open> {
        lock(&self.open)
            .clone()
            .filter(|open| !*open.dialled.ended.borrow())
    }

    /// Lets go of this connection, if it is still the one in use. Whether it was.
    fn discard(&self, number: u64) -> bool {
        let mut open = lock(&self.open);
        let is_in_use = open.as_ref().is_some_and(|open| open.number == number);
        if is_in_use {
            *open = None;
        }
        is_in_use
    }

    /// Sends one request and waits for its answer, in bounded time.
    ///
    /// # Errors
    /// [`StoreError`] with `subject` (as `lease "x"`) and the place in its message.
    pub(crate) async fn ask(&self, sent: &Sent, deed: Deed, subject: &str) -> Result<Message, StoreError> {
        self.ask_within(REQUEST_TIME_MAX, sent, deed, subject).await
    }

    /// The same where the servers may take longer.
    pub(crate) async fn ask_within(
        &self,
        allowed: Duration,
        sent: &Sent,
        deed: Deed,
        subject: &str,
    ) -> Result<Message, StoreError> {
        let open = self.open().await?;
        let asking = self.ask_on(&open, sent, deed, subject);
        let check = "the network and whether the servers are frozen, or lack a majority";
        let late = |_| Err(timed_out(deed, subject, self.place(), allowed, check));
        tokio::time::timeout(allowed, asking).await.unwrap_or_else(late)
    }

    async fn ask_on(
        &self,
        open: &Open,
        sent: &Sent,
        deed: Deed,
        subject: &str,
    ) -> Result<Message, StoreError> {
        let Dialled {
            client,
            ended,
            denials,
            ..
        } = &open.dialled;
        // Before the request is sent: its denial would be missed.
        let mut denials = denials.subscribe();
        let mut waiting = Waiting {
            link: self,
            open,
            sent: Instant::now(),
            answered: false,
        };
        let request = Request {
            payload: Some(sent.payload.clone().into()),
            headers: sent.headers.clone(),
            ..Request::default()
        };
        let complaint = async {
            loop {
                match denials.recv().await {
                    Ok(complaint) if denies(&complaint, &sent.to) => return complaint,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    // The sender lives as long as the connection, whose end is told otherwise.
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        let mut ended = ended.clone();
        let broken = async { drop(ended.wait_for(|ended| *ended).await) };
        let answer = tokio::select! {
            biased;
            answer = client.send_request(sent.to.clone(), request) => answer,
            complaint = complaint => {
                waiting.answered();
                return Err(denied(deed, subject, self.place(), &complaint));
            }
            () = broken => {
                self.discard(open.number);
                let why = "the connection ended before the answer came";
                return Err(deed.error(Fault::Unreachable, Certainty::Unknown, subject, self.place(), why));
            }
        };
        match answer {
            Ok(message) => {
                waiting.answered();
                Ok(message)
            }
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                waiting.answered();
                Err(nobody_there(deed, subject, self.place()))
            }
            Err(error) => {
                let (fault, certainty) = match error.kind() {
                    RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                        (Fault::Unsupported, Certainty::NotApplied)
                    }
                    _ => {
                        self.discard(open.number);
                        (Fault::Unreachable, Certainty::Unknown)
                    }
                };
                Err(deed.error(fault, certainty, subject, self.place(), line(error)))
            }
        }
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

impl Waiting<'_> {
    fn answered(&mut self) {
        self.answered = true;
        *lock(&self.open.answered) = Instant::now();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let silent = *lock(&self.open.answered) <= self.sent && self.sent.elapsed() >= SILENCE;
        if !self.answered && silent && self.link.discard(self.open.number) {
            // A server that is cut off from the others greets, and answers nothing.
            self.link.dial.leave(self.open.dialled.server);
        }
    }
}

/// Waits for the dial to end, and forgets it then and not before: who waits may give up.
async fn heard(dialling: &mut Option<Dialling>) -> Result<Dialled, StoreError> {
    let ended = dialling.as_mut().expect("a dial is under way").await;
    *dialling = None;
    let broken = |_| StoreError::not_applied(Fault::Internal, "connecting to NATS broke off; ask again");
    ended.map_err(broken)?
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
