//! Connections, each replaced when it breaks. The driver's own pool waits for a silent one without end.

use crate::dial::Dial;
use crate::session::Session;
use mysql_async::prelude::Queryable as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Fault, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

/// How long a connection that has just answered is believed to be there. After that it is asked before it is
/// used: a write on one that the server has closed would be uncertain for nothing.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// How long it may take to say that it is there.
const PING_TIME_MAX: Duration = Duration::from_secs(1);

/// What the sessions of some lanes are made ready for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sessions {
    Plain,
    WithShortWay,
}

/// A bounded number of connections for one purpose, each for one request at a time, made when they are
/// needed.
pub(crate) struct Lanes {
    sessions: Sessions,
    places: Semaphore,
    idle: Mutex<Vec<Idle>>,
    /// A dial whose caller gave up. The engine's patience may be shorter than a login takes: a dial that
    /// ended with it would be begun anew by each caller, and none would ever have a connection.
    left: Mutex<Option<Dialling>>,
}

/// A dial under way, or one that ended when nobody waited for it.
type Dialling = JoinHandle<Result<Session, StoreError>>;

struct Idle {
    session: Session,
    /// When it answered last; `None` when it is not to be believed.
    answered_at: Option<Instant>,
}

impl Lanes {
    pub(crate) fn new(width: usize, sessions: Sessions) -> Self {
        Self {
            sessions,
            places: Semaphore::new(width),
            idle: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// A connection that works, as far as can be known; waits for one where all are in use.
    ///
    /// # Errors
    /// As [`Dial::open`].
    pub(crate) async fn enter<'a>(
        &'a self,
        dial: &Arc<Dial>,
        what: &str,
    ) -> Result<UnderWay<'a>, StoreError> {
        let place = self
            .places
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let mut under_way = UnderWay {
            lanes: self,
            session: None,
            _place: place,
        };
        let latest = lock(&self.idle).pop();
        if let Some(Idle { session, answered_at }) = latest {
            under_way.session = Some(session);
            if answered_at.is_some_and(|at| at.elapsed() < TRUSTED_FOR) || under_way.answers().await {
                return Ok(under_way);
            }
            under_way.session = None;
            self.distrust();
        }
        under_way.session = self.left_behind().await;
        if under_way.session.is_some() && under_way.answers().await {
            return Ok(under_way);
        }
        under_way.session = None;
        under_way.session = Some(self.dialled(dial, what).await?);
        Ok(under_way)
    }

    /// The connection that a dial came to when nobody waited for it any more.
    async fn left_behind(&self) -> Option<Session> {
        let left = lock(&self.left).take_if(|left| left.is_finished())?;
        left.await.ok()?.ok()
    }

    /// A new connection: what a dial that another caller has left comes to, or one of the caller's own,
    /// whichever is there first. The earlier may wait for an answer that was lost; and for the later there
    /// may not be the time.
    async fn dialled(&self, dial: &Arc<Dial>, what: &str) -> Result<Session, StoreError> {
        let left = lock(&self.left).take();
        let (dial, what, sessions) = (Arc::clone(dial), what.to_owned(), self.sessions);
        let mut dials = Dials {
            lanes: self,
            left,
            own: Some(tokio::spawn(async move { dial.session(sessions, &what).await })),
        };
        let (left, own) = (&mut dials.left, &mut dials.own);
        if left.is_none() {
            return ended(own).await;
        }
        let session = tokio::select! {
            biased;
            earlier = ended(left) => match earlier {
                Ok(session) => session,
                Err(_) => ended(own).await?,
            },
            // Where both fail, this error is of this caller's subject.
            later = ended(own) => match later {
                Ok(session) => session,
                Err(error) => ended(left).await.map_err(|_| error)?,
            },
        };
        // The other one is needed no more.
        dials.abort();
        Ok(session)
    }

    /// Has every connection be asked before it is used: one has broken, and the others may have as well.
    pub(crate) fn distrust(&self) {
        for idle in lock(&self.idle).iter_mut() {
            idle.answered_at = None;
        }
    }

    /// Lets go of the connections that nobody uses.
    pub(crate) fn close(&self) {
        drop(std::mem::take(&mut *lock(&self.idle)));
        if let Some(left) = lock(&self.left).take() {
            left.abort();
        }
    }
}

/// The dials that one caller waits for. Who gives up leaves the earlier one to the next.
struct Dials<'a> {
    lanes: &'a Lanes,
    left: Option<Dialling>,
    own: Option<Dialling>,
}

impl Dials<'_> {
    fn abort(&mut self) {
        for dialling in [self.left.take(), self.own.take()].into_iter().flatten() {
            dialling.abort();
        }
    }
}

impl Drop for Dials<'_> {
    fn drop(&mut self) {
        for dialling in [self.left.take(), self.own.take()].into_iter().flatten() {
            let mut place = lock(&self.lanes.left);
            if place.is_none() {
                *place = Some(dialling);
            } else {
                dialling.abort();
            }
        }
    }
}

/// Waits for a dial, and forgets it when it has ended and not before.
async fn ended(dialling: &mut Option<Dialling>) -> Result<Session, StoreError> {
    let ended = dialling.as_mut().expect("a dial is under way").await;
    *dialling = None;
    let broken = |_| StoreError::not_applied(Fault::Internal, "connecting to MySQL broke off; ask again");
    ended.map_err(broken)?
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request under way. Dropped without an answer, it closes its connection: the other side may be gone
/// without a word, or its answer may still come.
pub(crate) struct UnderWay<'a> {
    lanes: &'a Lanes,
    session: Option<Session>,
    _place: SemaphorePermit<'a>,
}

impl UnderWay<'_> {
    pub(crate) fn session(&mut self) -> &mut Session {
        self.session
            .as_mut()
            .expect("a request under way has a connection")
    }

    /// The connection may be used again.
    pub(crate) fn answered(mut self) {
        if let Some(session) = self.session.take() {
            let answered_at = Some(Instant::now());
            lock(&self.lanes.idle).push(Idle { session, answered_at });
        }
    }

    async fn answers(&mut self) -> bool {
        let asked = tokio::time::timeout(PING_TIME_MAX, self.session().conn().ping()).await;
        matches!(asked, Ok(Ok(())))
    }
}
