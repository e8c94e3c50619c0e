use super::acquire::Shared;
use super::guard::Hold;
use super::{Lock, LockError, LockManagerBuilder, LockOwner, LockTiming, Turn};
use crate::driver::{Message, Queueing};
use crate::election::PATIENCE_AT_DROP;
use crate::registry::SharedStore;
use crate::sync::{AtomicBool, Ordering, blocking, broadcast, timeout};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Candidate, Event, Lease, LeaseName, Occupancy};

/// Takes locks, from one to a hundred thousand, with one heart that extends them all: see
/// [`builder`](Self::builder).
///
/// A lock is a lease: its record stays, its token only rises, and it ends by itself when its process dies.
/// Whoever waits is woken by the store, or looks when the store says that the lock ends; in one process,
/// waiters for one lock stand in line. The next of them takes the lock from the one before with one request,
/// up to eight times in a row, and more often within 20 ms; then it is released, so that other processes get
/// to try.
///
/// Locks are extended by a thread that no user code blocks. What is asked for goes through it, too, unless
/// the store answers within the call, as a file does: then [`lock`](Self::lock) and
/// [`release`](super::Lock::release) ask it on the thread that polls them, and log there what happens. That
/// thread waits for the disk, also for what a few others ask meanwhile; after a call that took more than 1
/// ms, the next are left to the manager's thread: one at first, up to 64 in a row if it stays so slow.
///
/// Dropping the manager ends what is waited for and waits, at most for one request time-out and at most
/// [`PATIENCE_AT_DROP`], until what was held has been released; [`close`](Self::close) does so without
/// blocking. A [`Lock`] may outlive its manager: that is waited for for 50 ms, in which a task that was just
/// aborted lets go of its own, and is extended until it goes. Await what you have aborted before you drop
/// this at the end of a process.
pub struct LockManager {
    shared: Arc<Shared>,
    /// Whether it was told to leave already: then dropping it waits for nothing.
    closed: AtomicBool,
}

impl LockManager {
    /// Begins to describe a manager of locks in `store`.
    pub fn builder(store: SharedStore) -> LockManagerBuilder {
        LockManagerBuilder::new(store)
    }

    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            closed: AtomicBool::new(false),
        }
    }

    /// Takes the lock, however long that takes: a failing store does not end the wait.
    ///
    /// Dropping the future ends it, and what an attempt may have taken unnoticed is found and released. A
    /// future that is kept but not polled, as in a loop of `select!` that is busy with another branch, holds
    /// the lock for one ttl at most: then the next has it, and the future waits anew when it is polled again.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn lock(&self, name: impl AsRef<str>) -> Result<Lock, LockError> {
        self.take(name.as_ref(), Queueing::Line, None).await
    }

    /// Takes the lock if it is free, by one look.
    ///
    /// # Errors
    /// [`LockError::Held`] and [`LockError::HeldHere`] if it is not; the others as they say.
    pub async fn try_lock(&self, name: impl AsRef<str>) -> Result<Lock, LockError> {
        self.take(name.as_ref(), Queueing::OneLook, None).await
    }

    /// Takes the lock, and waits for it for `patience` at most, on the runtime's clock.
    ///
    /// A patience below the [request time-out](tenure_core::Timing::request_timeout), even none, begins with
    /// one look, as by [`try_lock`](Self::try_lock): a lock that is free is had, however slow the store. Each
    /// of its requests may take that time-out: one, or one more each under
    /// [`Fairness::Fair`](crate::Fairness::Fair) and with an owner tag. A longer one that was in vain ends
    /// with a look whether the store still answers, which may take that time-out, too.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] if others had it all the time, with who had it; [`LockError::Store`] if that
    /// look failed and no time was left, or if the store failed, or did not answer, to the end of the
    /// patience; the others as they say.
    pub async fn try_lock_for(&self, name: impl AsRef<str>, patience: Duration) -> Result<Lock, LockError> {
        self.take(name.as_ref(), Queueing::Line, Some(patience)).await
    }

    async fn take(
        &self,
        name: &str,
        queueing: Queueing,
        patience: Option<Duration>,
    ) -> Result<Lock, LockError> {
        let name = LeaseName::new(name).map_err(LockError::Name)?;
        let held = self.shared.acquire(&name, queueing, patience).await?;
        Ok(Lock::first(Arc::new(Hold::new(held, None))))
    }

    /// Waits for the first place in the queue for a lock, and keeps it until the turn is dropped: for whoever
    /// takes the lock by other means, such as an [`Election`](crate::Election) of the same name. A manager
    /// whose locks are [fair](super::Fairness::Fair) does so by itself.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn turn(&self, name: impl AsRef<str>) -> Result<Turn, LockError> {
        let name = LeaseName::new(name).map_err(LockError::Name)?;
        Ok(self.shared.turn(&name).await?.kept())
    }

    /// Who holds a lock, here or elsewhere; `None` where nobody does, or it was never taken. It may be over
    /// by the time that this is read: it is for people, and decides nothing.
    ///
    /// # Errors
    /// [`LockError::Name`], and [`LockError::Store`] where the store did not answer within its request
    /// time-out, or with an error.
    pub async fn holder(&self, name: impl AsRef<str>) -> Result<Option<Lease>, LockError> {
        let name = LeaseName::new(name).map_err(LockError::Name)?;
        let lease = self.shared.look(&name).await.map_err(LockError::Store)?;
        Ok(lease.filter(|lease| lease.occupancy() == Occupancy::Held))
    }

    /// A new owner, who never waits for itself.
    #[must_use]
    pub fn owner(&self) -> LockOwner {
        LockOwner::new(self.shared.clone())
    }

    /// How many locks are held or waited for.
    #[must_use]
    pub fn locks(&self) -> u64 {
        self.shared.permits.used()
    }

    /// This candidate, in whose name the locks are held.
    #[must_use]
    pub fn candidate(&self) -> &Candidate {
        &self.shared.candidate
    }

    /// The timing. That of fair locks has no spread: whoever campaigns for one does so alone.
    #[must_use]
    pub fn timing(&self) -> &LockTiming {
        &self.shared.timing
    }

    /// Subscribes to everything that happens to the locks, and to the places by which this process waits for
    /// [fair](crate::Fairness::Fair) ones and for [turns](Self::turn): those are leases, too, and
    /// [`Standby::read`](super::Standby::read) tells them from locks. That the store does not tell who is
    /// before a place is a failed attempt of that place, once for each kind of fault. Of more than 256 events
    /// that wait, the oldest are missed, and the receiver is told.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// Ends what is waited for, and waits until nothing is held any more.
    ///
    /// A [`Lock`] that still lives is extended until it goes; it is not waited for longer than one ttl.
    /// Dropping the future stops the wait, nothing else. Whoever asks for a lock after that is told that the
    /// manager has stopped; whoever listens to its [events](Self::events) hears the end of them when it is
    /// dropped.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let limit = self.timing().lease().ttl().duration();
        self.shared.begin_to_close();
        let driver = &self.shared.driver;
        if driver.tell(Message::Close { closed: None }).is_ok() {
            let _ = timeout(limit, driver.gone()).await;
        }
    }
}

impl Drop for LockManager {
    fn drop(&mut self) {
        if *self.closed.get_mut() {
            return;
        }
        self.shared.begin_to_close();
        let (closed, gone) = blocking::channel();
        let close = Message::Close { closed: Some(closed) };
        if self.shared.driver.tell(close).is_ok() {
            let patience = self.timing().lease().request_timeout().min(PATIENCE_AT_DROP);
            let _ = gone.recv_timeout(patience);
        }
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("candidate", self.candidate())
            .field("locks", &self.locks())
            .finish_non_exhaustive()
    }
}
