//! One after another across processes: a queue of leases beside the lock.
//!
//! Each process that waits has a [place](super::standby) in the queue, and all rank the places alike. Each
//! waits for the one before it alone, so that no release wakes more than one; the first campaigns for the
//! lock, and leaves the queue when it has it. A process has one place in a queue, and its own waiters stand
//! in [line](super::line) for that.

use super::LockError;
use super::acquire::Shared;
use super::announce_place::announce_unread;
use super::line::{Call, Number, Round};
use super::standby::{own_place, queue_of, ranked};
use super::watched::Watched;
use crate::driver::watch_scope;
use crate::held::HeldTerm;
use crate::sync::{select, sleep};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Authority, Event, Lease, LeaseName, Scope, StoreError};

/// Who gets a lock next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fairness {
    /// Whoever asks first when it is free: fastest. A process that wants it again and again has it in rows,
    /// of eight or for 20 ms each, and others wait meanwhile; now and then, at least once in 32 rows, it lets
    /// them go first, where the store can wake them. So nobody waits for ever, and nobody is promised a turn.
    #[default]
    Barging,
    /// First come, first served across processes of one [priority](super::LockManagerBuilder::priority), as
    /// far as all use it: from a process's arrival in the queue to its turn, every other process has its turn
    /// at most once. Within a process, waiters stand in line, and up to eight of them take the lock one from
    /// another in the turn of the first, beside those who have it within the first 20 ms of that turn; only
    /// when the last of these has it, another of that process enters the queue. So nobody waits for more than
    /// nine of another process, or for more than eight and those 20 ms, beside the one who has the lock when
    /// it comes.
    ///
    /// The order is that of the tokens of their places. Where tokens follow the store's clock, a candidate
    /// whose place has a token ahead of it, from when the clock was ahead, is overtaken by others until the
    /// clock has come there.
    ///
    /// Costs three more requests for each turn where nobody else waits, to arrive, to look, to leave; and
    /// where others do, five: it looks again when the one before it has left, and asks for the lock before
    /// that one has given it back. A waiter that dies holds the queue up for its ttl at most. Every process
    /// leaves a record in the queue, with its candidate's id as the name: where each has an id of its own, as
    /// by default, `tenure gc` removes them. Redis, etcd and NATS read all of them with each look, NATS by a
    /// request for each: clean up there before they are thousands.
    Fair,
}

/// The first place in the queue for a lock; others move up when it is dropped.
#[must_use = "the place in the queue is given up when this is dropped"]
pub struct Turn {
    shared: Arc<Shared>,
    name: LeaseName,
    place: HeldTerm,
    // After the place: the next of this process enters the queue when this one has left it.
    round: Arc<Round>,
}

impl Turn {
    /// Has others of this process follow.
    pub(super) fn take_along(&self) {
        self.round.call_along();
    }

    /// Whoever has it has the lock.
    pub(super) fn taken(&self) {
        self.round.taken();
    }

    /// Whoever has it is polled.
    pub(super) fn progress(&self) {
        self.place.progress();
        self.round.progress();
    }

    /// From now on it may be had by somebody who does not wait for anything here.
    pub(super) fn kept(self) -> Self {
        self.place.assure_progress();
        // Nobody follows soon: what nobody listens to costs the store a connection.
        drop(self.round.take_watched());
        self
    }

    /// Whether another is before this one by now, because it was called or has a higher priority. One
    /// request.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_overtaken(&self) -> Result<bool, StoreError> {
        let ahead = self.shared.ahead(&self.name, &self.place).await?;
        Ok(matches!(ahead, Ahead::Somebody(_)))
    }

    /// Returns when another is before this one, or the place was lost. Looks when something happens in the
    /// queue, and at least as often as the place is renewed; an error of the store ends nothing.
    pub async fn over(&self) {
        let timing = self.shared.timing.lease();
        let scope = Scope::Prefix(queue_of(&self.name));
        let mut hints = watch_scope(&self.shared.store, scope, timing.retry_every());
        loop {
            match self.shared.ahead(&self.name, &self.place).await {
                Ok(Ahead::Somebody(_) | Ahead::Lost) => return,
                Ok(Ahead::Nobody | Ahead::Never) | Err(_) => {}
            }
            select! {
                biased;
                Some(_) = hints.recv() => {}
                () = sleep(timing.renew_every()) => {}
            }
        }
    }

    /// Waits for the first place again, with the same place in the queue. Answers whether there is one: a
    /// place that was lost is another's, and the way back is a new turn.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn regain(&self) -> Result<bool, LockError> {
        let is_first = self.shared.is_first(&self.name, &self.place, &self.round).await;
        // As when it was had first.
        drop(self.round.take_watched());
        is_first
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(self.place.name()).finish()
    }
}

impl Shared {
    /// Waits for the first place in the queue for a lock.
    pub(super) async fn turn(self: &Arc<Self>, name: &LeaseName) -> Result<Turn, LockError> {
        let number = self.lines.join(name);
        loop {
            match self.called(name, &number, None).await? {
                Call::First(round) => return self.in_queue(name, round).await,
                // It can follow nobody: others are called, and it is the first in the next round.
                Call::Along(along) => drop(along),
            }
        }
    }

    /// As [`Number::called`], until the manager closes: whoever has the turn may keep it for as long as it
    /// likes.
    pub(super) async fn called(
        &self,
        name: &LeaseName,
        number: &Number,
        in_vain: Option<Arc<Round>>,
    ) -> Result<Call, LockError> {
        let mut closing = self.closing.subscribe();
        select! {
            biased;
            call = number.called(name, in_vain, self.line_patience()) => call,
            _ = closing.wait_for(|closing| *closing) => Err(LockError::Stopped(name.clone())),
        }
    }

    pub(super) async fn in_queue(
        self: &Arc<Self>,
        name: &LeaseName,
        round: Arc<Round>,
    ) -> Result<Turn, LockError> {
        let place = self.place_in_queue(name)?;
        loop {
            // A place that was lost, by an outage of the store, is another's: it begins anew at the end.
            let taking = self.take_place(&place);
            let held = self.telling(|| round.progress(), taking).await?;
            let coming_first = self.is_first(name, &held, &round);
            if self.telling(|| round.progress(), coming_first).await? {
                return Ok(Turn {
                    shared: Arc::clone(self),
                    name: name.clone(),
                    place: held,
                    round,
                });
            }
        }
    }

    /// The lease by which this process waits for a lock in order.
    pub(super) fn place_in_queue(&self, name: &LeaseName) -> Result<LeaseName, LockError> {
        own_place(name, self.priority, &self.candidate.id).map_err(LockError::Name)
    }

    /// How long others of this process wait for one whose future is not polled.
    fn line_patience(&self) -> Duration {
        self.timing.lease().ttl().duration()
    }

    /// Waits, and tells again and again that it is polled.
    pub(super) async fn telling<T>(&self, tell: impl Fn(), waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        loop {
            select! {
                biased;
                outcome = &mut waiting => return outcome,
                () = sleep(self.timing.lease().renew_every()) => tell(),
            }
        }
    }

    /// Whether others wait for a lock.
    pub(super) async fn others_wait(&self, name: &LeaseName) -> Result<bool, StoreError> {
        let time_max = self.timing.lease().request_timeout();
        let standbys = ranked(&self.store, &queue_of(name), time_max, None).await?;
        Ok(standbys.iter().any(|standby| standby.priority.may_lead()))
    }

    /// Returns when the place is the first, or was lost.
    async fn is_first(&self, name: &LeaseName, place: &HeldTerm, round: &Round) -> Result<bool, LockError> {
        let is_of_use = |watched: &Watched| watched.is_read_here() && watched.stands();
        let mut watched = round.take_watched().filter(is_of_use);
        let mut closing = self.closing.subscribe();
        loop {
            place.progress();
            if *closing.borrow_and_update() {
                return Err(LockError::Stopped(name.clone()));
            }
            // What it has told is older than the look that follows.
            if let Some(watched) = &mut watched {
                watched.pass_over();
            }
            let ahead = self.ahead(name, place).await;
            let is_news = round.looked(ahead.as_ref().err().cloned());
            let before = match ahead {
                Ok(Ahead::Nobody) => {
                    round.keep_watched(watched.filter(Watched::stands));
                    return Ok(true);
                }
                Ok(Ahead::Somebody(before)) => Some(before),
                Ok(Ahead::Never) => None,
                Ok(Ahead::Lost) => return Ok(false),
                Err(error) if error.fault.is_final() => return Err(LockError::Store(error)),
                Err(error) => {
                    if is_news {
                        self.tell_unread(place.name(), error);
                    }
                    select! {
                        biased;
                        _ = closing.changed() => {}
                        () = sleep(self.timing.lease().retry_every()) => {}
                    }
                    continue;
                }
            };
            let next = before.as_ref().map_or(place.name(), |before| &before.name);
            watched = watched.filter(|watched| watched.is_of(next) && !watched.has_ended());
            // It begins with a hint to look again: it may have left before it was watched.
            let watched =
                watched.get_or_insert_with(|| Watched::of(&self.store, next, self.timing.back_off()));
            let longest = self.timing.lease().renew_every();
            // Nobody tells of an expiry: its own remaining time does.
            let soonest = Duration::from_millis(1);
            let remaining = before.map_or(longest, |before| before.remaining);
            let is_held = matches!(place.term().authority(), Authority::Held { .. });
            select! {
                biased;
                () = watched.told() => {}
                // Called to the front, or lost.
                () = place.doubted(), if is_held => {}
                _ = closing.changed() => {}
                () = sleep(longest.min(remaining.max(soonest))) => {}
            }
        }
    }

    /// Tells that a queue stands still here: the lock may be free meanwhile.
    fn tell_unread(&self, place: &LeaseName, error: StoreError) {
        let retry_in = self.timing.lease().retry_every();
        announce_unread(self.candidate.id.as_str(), place, &error, retry_in);
        let event = Event::AttemptFailed {
            name: place.clone(),
            error,
            retry_in,
        };
        // An error says that nobody listens.
        drop(self.events.send(event));
    }

    /// Who is before this place.
    async fn ahead(&self, name: &LeaseName, place: &HeldTerm) -> Result<Ahead, StoreError> {
        let time_max = self.timing.lease().request_timeout();
        let standbys = ranked(&self.store, &queue_of(name), time_max, Some(place.name())).await?;
        let is_ours = |lease: &Lease| lease.name == *place.name() && lease.token == place.token();
        let ours = standbys.iter().position(|standby| is_ours(&standby.place));
        Ok(match ours {
            _ if place.term().authority() == Authority::None => Ahead::Lost,
            // Its record is another's, or has expired.
            None => Ahead::Lost,
            Some(_) if !self.priority.may_lead() => Ahead::Never,
            Some(0) => Ahead::Nobody,
            Some(ours) => Ahead::Somebody(standbys[ours - 1].place.clone()),
        })
    }
}

/// Who is before a place in a queue.
enum Ahead {
    Nobody,
    Somebody(Lease),
    /// All: it may not lead.
    Never,
    /// There is no such place any more.
    Lost,
}
