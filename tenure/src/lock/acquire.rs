//! Taking one lock.

use super::line::{Call, Lines};
use super::{Fairness, LockError, LockTiming, Reentrancy};
use crate::driver::{DriverHandle, Message, NotWon, Permit, Permits, Queueing, Waiting, Withdrawal, Won};
use crate::held::HeldTerm;
use crate::registry::SharedStore;
use crate::sync::{broadcast, oneshot, timeout, watch};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Candidate, Event, Fault, Lease, LeaseName, Priority, StoreError};

/// What a manager and its owners share.
pub(super) struct Shared {
    pub(super) store: SharedStore,
    pub(super) driver: DriverHandle,
    /// Whether the manager has begun to close, for those who wait for something else than the driver.
    pub(super) closing: watch::Sender<bool>,
    pub(super) permits: Permits,
    pub(super) candidate: Candidate,
    pub(super) timing: LockTiming,
    pub(super) reentrancy: Reentrancy,
    pub(super) fairness: Fairness,
    pub(super) priority: Priority,
    pub(super) max_hold: Option<Duration>,
    pub(super) lines: Lines,
    pub(super) events: broadcast::Sender<Event>,
}

impl Shared {
    /// Whoever waits in a queue of the store's waits no longer.
    pub(super) fn begin_to_close(&self) {
        self.closing
            .send_if_modified(|closing| !std::mem::replace(closing, true));
    }

    /// Takes the lock, as long as that takes.
    pub(super) async fn take(
        self: &Arc<Self>,
        name: &LeaseName,
        queueing: Queueing,
    ) -> Result<HeldTerm, LockError> {
        loop {
            let permit = self.permit(name).await?;
            match (self.fairness, queueing) {
                (Fairness::Barging, _) => {}
                (Fairness::Fair, Queueing::OneLook) => {
                    // One whose turn never comes has none by a look, either: everybody is before it.
                    if *self.closing.borrow() {
                        return Err(LockError::Stopped(name.clone()));
                    }
                    self.place_in_queue(name)?;
                    let is_last = !self.priority.may_lead();
                    if is_last || self.others_wait(name).await.map_err(LockError::Store)? {
                        return Err(LockError::OthersWait(name.clone()));
                    }
                }
                (Fairness::Fair, Queueing::Alone | Queueing::Line | Queueing::Follow) => {
                    if let Some(held) = self.acquire_in_turn(name, permit).await? {
                        return Ok(held);
                    }
                    continue;
                }
            }
            let campaign = self.campaign(name, queueing, Some(permit))?;
            let held = campaign.outcome().await.map_err(|error| error.of(name))?;
            if let Some(held) = held {
                return Ok(held);
            }
        }
    }

    /// What the store has of a lock.
    pub(super) async fn look(&self, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        let time_max = self.timing.lease().request_timeout();
        let late = |_| {
            let message = format!("lease \"{name}\": no answer in {time_max:?}; is the store reachable?");
            StoreError::not_applied(Fault::TimedOut, message)
        };
        timeout(time_max, self.store.get(name)).await.map_err(late)?
    }

    async fn permit(&self, name: &LeaseName) -> Result<Permit, LockError> {
        if let Some(permit) = self.permits.take() {
            return Ok(permit);
        }
        // That of a lock that was given back a moment ago is free when the driver has heard of it.
        let (heard, answer) = oneshot::channel();
        let told = self.driver.ask(Message::Hear { heard });
        told.map_err(|_gone| LockError::Stopped(name.clone()))?;
        answer.await.map_err(|_| LockError::Stopped(name.clone()))?;
        self.permits.take().ok_or_else(|| LockError::TooMany {
            name: name.clone(),
            locks_max: self.permits.max(),
        })
    }

    /// Takes the lock in this process's turn: by a turn of its own, or behind another of this process in its
    /// turn. `None` if it was not taken up in time.
    async fn acquire_in_turn(
        self: &Arc<Self>,
        name: &LeaseName,
        permit: Permit,
    ) -> Result<Option<HeldTerm>, LockError> {
        let number = self.lines.join(name);
        let (mut permit, mut in_vain) = (Some(permit), None);
        loop {
            match self.called(name, &number, in_vain.take()).await? {
                Call::First(round) => {
                    let turn = self.in_queue(name, round).await?;
                    let campaign = self.campaign(name, Queueing::Line, permit.take())?;
                    // They stand behind this one now.
                    turn.take_along();
                    let outcome = self.telling(|| turn.progress(), campaign.outcome()).await;
                    if let Ok(Some(_)) = outcome {
                        turn.taken();
                    }
                    return outcome.map_err(|error| error.of(name));
                }
                Call::Along(along) => {
                    let campaign = self.campaign(name, Queueing::Follow, permit.take())?;
                    let round = along.go();
                    match self.telling(|| round.progress(), campaign.outcome()).await {
                        // The one that it followed has left, or was the last of this turn.
                        Err(NotTaken::Busy(given_back)) => (permit, in_vain) = (given_back, Some(round)),
                        outcome => {
                            if let Ok(Some(_)) = outcome {
                                round.taken();
                            }
                            return outcome.map_err(|error| error.of(name));
                        }
                    }
                }
            }
        }
    }

    /// Takes a place in a queue by the driver, for as long as it takes. It is held for as long as one waits:
    /// the bound on how long a lock may be held is none on how long one may wait for it. But who waits must
    /// tell of it: a future that is not polled any more keeps nobody else waiting.
    pub(super) async fn take_place(&self, place: &LeaseName) -> Result<HeldTerm, LockError> {
        let progress_within = Some(self.timing.lease().ttl().duration());
        loop {
            let campaign = self.send(place, Queueing::Line, (None, progress_within), None)?;
            let held = campaign.outcome().await.map_err(|error| error.of(place))?;
            if let Some(held) = held {
                return Ok(held);
            }
        }
    }

    /// Has the driver campaign for a lock, from now on.
    fn campaign<'a>(
        &'a self,
        name: &'a LeaseName,
        queueing: Queueing,
        permit: Option<Permit>,
    ) -> Result<Campaign<'a>, LockError> {
        self.send(name, queueing, (self.max_hold, None), permit)
    }

    fn send<'a>(
        &'a self,
        name: &'a LeaseName,
        queueing: Queueing,
        (max_hold, progress_within): (Option<Duration>, Option<Duration>),
        permit: Option<Permit>,
    ) -> Result<Campaign<'a>, LockError> {
        // Made before the answer's end, so that the driver sees that nobody waits when it is told to look.
        let mut withdrawal = Withdrawal { name, driver: None };
        let (won, answer) = oneshot::channel();
        let waiting = Waiting {
            name: name.clone(),
            won,
            driver: self.driver.clone(),
            queueing,
            max_hold,
            progress_within,
            permit,
        };
        let asked = self.driver.ask(Message::Campaign(waiting));
        asked.map_err(|_gone| LockError::Stopped(name.clone()))?;
        withdrawal.driver = Some(&self.driver);
        Ok(Campaign { answer, withdrawal })
    }
}

/// A campaign under way; withdrawn if it is dropped.
struct Campaign<'a> {
    // Dropped before the withdrawal: the driver is to see that nobody waits when it is told to look.
    answer: oneshot::Receiver<Result<Won, NotWon>>,
    withdrawal: Withdrawal<'a>,
}

/// Why a lease was not taken.
enum NotTaken {
    /// Somebody here is before it, or nobody whom it could follow.
    Busy(Option<Permit>),
    /// The manager has stopped.
    Stopped,
    Because(LockError),
}

impl NotTaken {
    fn of(self, name: &LeaseName) -> LockError {
        match self {
            Self::Busy(_) => LockError::HeldHere(name.clone()),
            Self::Stopped => LockError::Stopped(name.clone()),
            Self::Because(error) => error,
        }
    }
}

impl Campaign<'_> {
    /// `None` if what was won was not taken up in time.
    async fn outcome(mut self) -> Result<Option<HeldTerm>, NotTaken> {
        let outcome = (&mut self.answer).await;
        self.withdrawal.driver = None;
        let other_application = |holder| LockError::OtherApplication {
            name: self.withdrawal.name.clone(),
            holder,
        };
        match outcome {
            Ok(Ok(won)) => Ok(won.take_up().map(|won| won.held.after(won.grant.predecessor))),
            Ok(Err(NotWon::Busy(permit))) => Err(NotTaken::Busy(permit)),
            Ok(Err(NotWon::Store(error))) => Err(NotTaken::Because(LockError::Store(error))),
            Ok(Err(NotWon::Held(lease))) => Err(NotTaken::Because(LockError::Held(lease))),
            Ok(Err(NotWon::Foreign(lease))) => Err(NotTaken::Because(other_application(lease.holder.id))),
            Ok(Err(NotWon::ForeignBefore(before))) => {
                Err(NotTaken::Because(other_application(before.candidate)))
            }
            Err(_) => Err(NotTaken::Stopped),
        }
    }
}
