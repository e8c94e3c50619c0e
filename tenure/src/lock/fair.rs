//! First come, first served across processes: a queue of leases beside the lock.
//!
//! A process that waits holds the lease `<lock>/candidates/<its id>`, whose token, given by the store, orders the
//! arrivals. Each waits for the one before it alone, so that no release wakes more than one; the first campaigns
//! for the lock, and leaves the queue when it has it. A process has one place in a queue, and its own waiters
//! stand in line for that.

use super::LockError;
use super::acquire::Shared;
use crate::driver::{HAND_ONS_MAX, Queueing, watch_lease};
use crate::held::HeldTerm;
use crate::sync::{mpsc, select, sleep, timeout};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::{
    Authority, Fault, FencingToken, Lease, LeaseName, Listed, Occupancy, Page, StoreError, WatchEvent,
    WatchSource,
};
use tokio::sync::{Mutex as First, Notify, OwnedMutexGuard};

/// Who gets a lock next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fairness {
    /// Whoever asks first when it is free: fastest. One process may have it again and again while others wait.
    #[default]
    Barging,
    /// First come, first served across processes, as far as all use it: from a process's arrival in the queue to
    /// its turn, every other process has its turn at most once. Within a process, waiters stand in line, and up to eight of
    /// them take the lock one from another in the turn of the first: nobody waits for more than nine of another process.
    ///
    /// Costs three more requests for each turn: to arrive, to look, to leave. A waiter that
    /// dies holds the queue up for its ttl at most. Every process leaves a record in the queue, with its candidate's id as the name: where each has
    /// an id of its own, as by default, `tenure gc` removes them.
    Fair,
}

/// Records of a queue that are read at once.
const PAGE: u16 = 1_000;

/// The lines in this process, one for each queue that anybody here is in.
#[derive(Default)]
pub(super) struct Lines(Mutex<BTreeMap<LeaseName, Arc<Line>>>);

/// Those of this process who wait for one lock.
#[derive(Default)]
struct Line {
    /// Held by the one who waits in the queue for all.
    first: Arc<First<()>>,
    /// Wakes those who may go along with it, in the order in which they came.
    along: Notify,
}

/// What somebody in a line may do.
pub(super) enum Move {
    /// It is this process's turn, and this one's.
    Turn(Turn),
    /// Another of this process has its turn: follow it.
    Along,
}

impl Lines {
    fn of(&self, name: &LeaseName) -> Arc<Line> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody stands in any more go when the next one comes.
        lines.retain(|_, line| Arc::strong_count(line) > 1);
        lines.entry(name.clone()).or_default().clone()
    }
}

/// The first place in the queue for a lock; others move up when it is dropped.
pub struct Turn {
    place: HeldTerm,
    line: Arc<Line>,
    _first: OwnedMutexGuard<()>,
}

impl Turn {
    /// Has others of this process follow: as many as the lock is handed on to in a row.
    pub(super) fn take_along(&self) {
        for _ in 0..HAND_ONS_MAX {
            self.line.along.notify_one();
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(self.place.name()).finish()
    }
}

impl Shared {
    /// Waits for the first place in the queue for a lock.
    pub(super) async fn turn(&self, name: &LeaseName) -> Result<Turn, LockError> {
        let line = self.lines.of(name);
        let first = line.first.clone().lock_owned().await;
        self.in_queue(name, line, first).await
    }

    /// Waits for the first place in the queue, or for somebody of this process who has it.
    pub(super) async fn next_move(&self, name: &LeaseName) -> Result<Move, LockError> {
        let line = self.lines.of(name);
        let first = select! {
            biased;
            first = line.first.clone().lock_owned() => first,
            () = line.along.notified() => return Ok(Move::Along),
        };
        self.in_queue(name, line, first).await.map(Move::Turn)
    }

    async fn in_queue(
        &self,
        name: &LeaseName,
        line: Arc<Line>,
        first: OwnedMutexGuard<()>,
    ) -> Result<Turn, LockError> {
        let queue = format!("{name}/candidates/");
        let place = LeaseName::new(format!("{queue}{}", self.candidate.id)).map_err(LockError::Name)?;
        loop {
            // A place that was lost, by an outage of the store, is another's: it begins anew at the end.
            let held = self.acquire_here(&place, Queueing::Line, None).await?;
            if self.is_first(&queue, &held).await? {
                return Ok(Turn {
                    place: held,
                    line,
                    _first: first,
                });
            }
        }
    }

    /// Whether others wait for a lock.
    pub(super) async fn others_wait(&self, name: &LeaseName) -> Result<bool, StoreError> {
        let waiting = self.waiting(&format!("{name}/candidates/")).await?;
        Ok(!waiting.is_empty())
    }

    /// Returns when the place is the first, or was lost.
    async fn is_first(&self, queue: &str, place: &HeldTerm) -> Result<bool, LockError> {
        let mut pause = self.timing.back_off().base;
        let mut watched: Option<(LeaseName, mpsc::Receiver<WatchEvent>)> = None;
        loop {
            let before = match self.waiting(queue).await {
                Ok(waiting) => last_before(waiting, (place.token(), place.name())),
                Err(error) if error.fault.is_misconfiguration() => return Err(LockError::Store(error)),
                Err(_) => {
                    sleep(self.timing.lease().retry_every()).await;
                    continue;
                }
            };
            if place.term().authority() == Authority::None {
                return Ok(false);
            }
            let Some(before) = before else { return Ok(true) };
            if watched.as_ref().is_none_or(|(name, _)| *name != before.name) {
                let hints = watch_lease(&self.store, &before.name, self.timing.lease().retry_every());
                // It begins with a hint to look again: it may have left before it was watched.
                watched = Some((before.name.clone(), hints));
            }
            let (_, hints) = watched.as_mut().expect("set above");
            let longest = if self.store.traits().watch == WatchSource::Absent {
                pause = (pause * 2).min(self.timing.back_off().pause_max);
                pause
            } else {
                self.timing.lease().renew_every()
            };
            // Nobody tells of an expiry: its own remaining time does.
            let soonest = Duration::from_millis(1);
            select! {
                biased;
                Some(_) = hints.recv() => {}
                () = sleep(longest.min(before.remaining.max(soonest))) => {}
            }
        }
    }

    /// Who waits in a queue.
    async fn waiting(&self, queue: &str) -> Result<Vec<Lease>, StoreError> {
        let mut waiting = Vec::new();
        let mut page = Page {
            prefix: queue.to_owned(),
            after: None,
            limit: PAGE,
        };
        loop {
            let time_max = self.timing.lease().request_timeout();
            let late = |_| {
                let message =
                    format!("queue \"{queue}\": no answer in {time_max:?}; is the store reachable?");
                StoreError::not_applied(Fault::TimedOut, message)
            };
            let found = timeout(time_max, self.store.list(&page)).await.map_err(late)??;
            waiting.extend(found.leases.into_iter().filter_map(|listed| match listed {
                Listed::Lease(lease) => (lease.occupancy() == Occupancy::Held).then_some(lease),
                // Nobody waits by it: it can be neither extended nor taken.
                Listed::Unreadable { .. } => None,
            }));
            match found.next {
                Some(next) => page.after = Some(next),
                None => return Ok(waiting),
            }
        }
    }
}

/// The last of those who came before.
fn last_before(waiting: Vec<Lease>, place: (FencingToken, &LeaseName)) -> Option<Lease> {
    waiting
        .into_iter()
        .filter(|lease| (lease.token, &lease.name) < place)
        .max_by(|one, other| (one.token, &one.name).cmp(&(other.token, &other.name)))
}
