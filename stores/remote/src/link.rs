//! One connection, made when it is needed and replaced when it is of no use any more.

use crate::in_line::TriedInVain;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{Fault, StoreError};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long requests must have waited in vain, with no answer on their connection meanwhile, for the
/// connection to count as silent when one of them is given up.
const SILENCE: Duration = Duration::from_millis(100);

/// How connections of one kind are made.
pub trait Dial: Send + Sync + 'static {
    /// A connection. A clone is the same one.
    type Connection: Clone + Send + Sync + 'static;

    /// Makes one, in bounded time.
    ///
    /// # Errors
    /// Not applied: nothing of a request was sent.
    fn dial(&self) -> impl Future<Output = Result<Self::Connection, StoreError>> + Send;

    /// Whether the other side has closed it.
    fn is_over(connection: &Self::Connection) -> bool;

    /// Its other side was silent: the next dial begins with another, where there is one.
    fn leave(&self, connection: &Self::Connection) {
        let _only_one = connection;
    }
}

/// A connection that heals: the drivers' own do not notice that nobody answers, or heal when it is too late.
pub struct Link<D: Dial> {
    dial: Arc<D>,
    open: Mutex<Option<Open<D::Connection>>>,
    /// One dial for all requests; it goes on when they give up. The engine's patience may be shorter than
    /// what one silent server is given: a dial that ended with it would never come to the next one.
    dialling: tokio::sync::Mutex<Option<Dialling<D::Connection>>>,
    dials: AtomicU64,
    /// Dials that have failed while somebody waited for them.
    failed: TriedInVain<StoreError>,
}

/// A dial under way, or one that ended when nobody waited for it.
type Dialling<C> = JoinHandle<Result<C, StoreError>>;

/// The connection in use.
#[derive(Clone)]
pub struct Open<C> {
    /// The connection itself.
    pub connection: C,
    number: u64,
    patience: Arc<Mutex<Patience>>,
}

/// How long a connection has been waited for in vain. It counts what all have waited, as each may have less
/// time than would prove the connection silent.
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

impl<D: Dial> Link<D> {
    /// Nothing is dialled yet.
    #[must_use]
    pub fn new(dial: Arc<D>) -> Self {
        Self {
            dial,
            open: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
            dials: AtomicU64::new(0),
            failed: TriedInVain::default(),
        }
    }

    /// How its connections are made.
    pub fn dial(&self) -> &Arc<D> {
        &self.dial
    }

    /// Whether there ever was a connection.
    pub fn was_open(&self) -> bool {
        self.dials.load(Ordering::Relaxed) > 0
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    /// Not applied.
    pub async fn open(&self) -> Result<Open<D::Connection>, StoreError> {
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        let failed_before = self.failed.count();
        let mut dialling = self.dialling.lock().await;
        if let Some(open) = self.usable() {
            return Ok(open);
        }
        self.failed.since(failed_before)?;
        let dialled = self.dialled(&mut dialling).await;
        if let Err(error) = &dialled {
            self.failed.note(error);
        }
        let open = Open {
            connection: dialled?,
            number: self.dials.fetch_add(1, Ordering::Relaxed),
            patience: Arc::new(Mutex::new(Patience::new())),
        };
        *lock(&self.open) = Some(open.clone());
        Ok(open)
    }

    /// What the dial under way comes to, or else a new one.
    async fn dialled(
        &self,
        dialling: &mut Option<Dialling<D::Connection>>,
    ) -> Result<D::Connection, StoreError> {
        if dialling.as_ref().is_some_and(JoinHandle::is_finished)
            // What it failed of may be long past.
            && let Ok(connection) = heard(dialling).await
            && !D::is_over(&connection)
        {
            return Ok(connection);
        }
        if dialling.is_some() {
            return self.dialled_beside(dialling).await;
        }
        let dial = Arc::clone(&self.dial);
        *dialling = Some(tokio::spawn(async move { dial.dial().await }));
        heard(dialling).await
    }

    /// What a dial that others left comes to, or one of the caller's own: that which the first waits for may
    /// be gone, while the second is answered at once; and the caller may not have the time for the second.
    async fn dialled_beside(
        &self,
        dialling: &mut Option<Dialling<D::Connection>>,
    ) -> Result<D::Connection, StoreError> {
        let mut own = std::pin::pin!(self.dial.dial());
        tokio::select! {
            left = heard(dialling) => match left {
                Ok(connection) => Ok(connection),
                Err(_earlier) => own.await,
            },
            dialled = &mut own => match dialled {
                Ok(connection) => {
                    if let Some(left) = dialling.take() {
                        left.abort();
                    }
                    Ok(connection)
                }
                Err(_later) => heard(dialling).await,
            },
        }
    }

    fn usable(&self) -> Option<Open<D::Connection>> {
        lock(&self.open)
            .clone()
            .filter(|open| !D::is_over(&open.connection))
    }

    /// Lets go of this connection, if it is still the one in use. Whether it was.
    pub fn discard(&self, open: &Open<D::Connection>) -> bool {
        let mut used = lock(&self.open);
        let is_used = used.as_ref().is_some_and(|used| used.number == open.number);
        if is_used {
            *used = None;
        }
        is_used
    }

    /// A request is about to be sent on this connection.
    pub fn wait_on<'a>(&'a self, open: &'a Open<D::Connection>) -> Waiting<'a, D> {
        Waiting {
            link: self,
            open,
            sent: Instant::now(),
            is_answered: false,
        }
    }
}

/// A request under way. Given up, it may take the connection with it: who gives up first is mostly the
/// engine, whose patience is shorter than any time-out of a store, and a silent connection would be used for
/// ever.
#[must_use]
pub struct Waiting<'a, D: Dial> {
    link: &'a Link<D>,
    open: &'a Open<D::Connection>,
    sent: Instant,
    is_answered: bool,
}

impl<D: Dial> Waiting<'_, D> {
    /// The other side has said something.
    pub fn answered(&mut self) {
        self.is_answered = true;
        *lock(&self.open.patience) = Patience::new();
    }
}

impl<D: Dial> Drop for Waiting<'_, D> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let is_silent = {
            let mut patience = lock(&self.open.patience);
            patience.wait_in_vain(self.sent);
            patience.waited >= SILENCE
        };
        if is_silent && self.link.discard(self.open) {
            self.link.dial.leave(&self.open.connection);
        }
    }
}

/// Waits for the dial to end, and forgets it then and not before: who waits may give up.
async fn heard<C>(dialling: &mut Option<Dialling<C>>) -> Result<C, StoreError> {
    let ended = dialling.as_mut().expect("a dial is under way").await;
    *dialling = None;
    let broken = |_| StoreError::not_applied(Fault::Internal, "connecting broke off; ask again");
    ended.map_err(broken)?
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Dial, Link, SILENCE};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;
    use tenure_core::{Fault, StoreError};
    use tokio::sync::Semaphore;

    /// Dials that end when the test says so.
    #[derive(Default)]
    struct Doors {
        begun: AtomicUsize,
        left: AtomicUsize,
        /// The first dial is of a server that is gone: it never ends by itself.
        first_is_lost: bool,
        open: Option<Semaphore>,
    }

    impl Dial for Doors {
        type Connection = (usize, Arc<AtomicBool>);

        async fn dial(&self) -> Result<Self::Connection, StoreError> {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if number == 0 && self.first_is_lost {
                std::future::pending::<()>().await;
            }
            if let Some(open) = &self.open {
                let closed = |_| StoreError::not_applied(Fault::Unreachable, "nobody is there");
                open.acquire().await.map_err(closed)?.forget();
            }
            Ok((number, Arc::default()))
        }

        fn is_over((_, over): &Self::Connection) -> bool {
            over.load(Ordering::Relaxed)
        }

        fn leave(&self, _connection: &Self::Connection) {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_dial_serves_all_and_what_is_over_is_dialled_again() {
        let link = Link::new(Arc::new(Doors::default()));
        assert!(!link.was_open());
        let (one, other) = tokio::join!(link.open(), link.open());
        let (one, other) = (one.expect("open"), other.expect("open"));
        assert_eq!((one.connection.0, other.connection.0), (0, 0));
        one.connection.1.store(true, Ordering::Relaxed);
        assert_eq!(link.open().await.expect("another").connection.0, 1);
        assert!(link.was_open());
        assert!(
            !link.discard(&other),
            "an earlier one takes the later one with it"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_stand_in_line_share_a_dial_that_fails() {
        let doors = Doors {
            open: Some(Semaphore::new(0)),
            ..Doors::default()
        };
        let link = Link::new(Arc::new(doors));
        let closing = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            link.dial().open.as_ref().expect("doors").close();
        };
        let (one, two, three, ()) = tokio::join!(link.open(), link.open(), link.open(), closing);
        assert!(one.is_err() && two.is_err() && three.is_err());
        assert_eq!(link.dial().begun.load(Ordering::Relaxed), 1);
        // Who comes later dials anew.
        assert!(link.open().await.is_err());
        assert_eq!(link.dial().begun.load(Ordering::Relaxed), 2);
    }

    /// A link whose dial is under way, and for which nobody waits any more.
    async fn given_up(doors: Doors) -> Link<Doors> {
        let link = Link::new(Arc::new(doors));
        let given_up = tokio::time::timeout(Duration::from_millis(5), link.open()).await;
        assert!(given_up.is_err());
        link
    }

    #[tokio::test(start_paused = true)]
    async fn dial_goes_on_when_those_who_waited_give_up() {
        let link = given_up(Doors {
            open: Some(Semaphore::new(0)),
            ..Doors::default()
        });
        let link = link.await;
        link.dial().open.as_ref().expect("doors").add_permits(1);
        while link.dial().open.as_ref().expect("doors").available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(link.open().await.expect("open").connection.0, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn dial_that_is_lost_holds_up_nobody_who_comes_later() {
        let link = given_up(Doors {
            first_is_lost: true,
            ..Doors::default()
        });
        let link = link.await;
        let open = tokio::time::timeout(Duration::from_secs(30), link.open()).await;
        assert_eq!(open.expect("in time").expect("open").connection.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn dial_that_failed_when_nobody_waited_for_it_is_no_answer_to_who_comes_later() {
        let link = given_up(Doors {
            open: Some(Semaphore::new(0)),
            ..Doors::default()
        });
        let link = link.await;
        link.dial().open.as_ref().expect("doors").close();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(link.open().await.is_err());
        assert_eq!(link.dial().begun.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_several_have_waited_in_vain_counts_once() {
        let link = Link::new(Arc::new(Doors::default()));
        let open = link.open().await.expect("open");
        let waiting: Vec<_> = (0..10).map(|_| link.wait_on(&open)).collect();
        tokio::time::sleep(SILENCE / 2).await;
        drop(waiting);
        assert_eq!(link.open().await.expect("the same").connection.0, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_left_once_all_together_have_waited_long_enough_in_vain() {
        let link = Link::new(Arc::new(Doors::default()));
        let open = link.open().await.expect("open");
        let each = SILENCE / 4;
        for _request in 0..3 {
            // Answers in between begin the count anew.
            let waiting = link.wait_on(&open);
            tokio::time::sleep(each).await;
            drop(waiting);
            let mut answered = link.wait_on(&open);
            answered.answered();
        }
        assert_eq!(link.open().await.expect("the same").connection.0, 0);
        for _request in 0..5 {
            let waiting = link.wait_on(&open);
            tokio::time::sleep(each).await;
            drop(waiting);
        }
        assert_eq!(link.open().await.expect("another").connection.0, 1);
        assert_eq!(
            link.dial().left.load(Ordering::Relaxed),
            1,
            "left once, whoever gives up"
        );
    }
}
