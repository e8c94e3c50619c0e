//! Taking one lock.

use super::line::{Call, Lines};
use super::{Fairness, LockError, LockTiming, Reentrancy};
use crate::driver::{
    Campaign, Conditions, DriverHandle, Message, NotWon, Permit, Permits, Queueing, answer_within,
};
use crate::held::HeldTerm;
use crate::registry::SharedStore;
use crate::sync::{broadcast, oneshot, watch};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Candidate, Event, Lease, LeaseName, Priority, StoreError};

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
            let held = outcome(campaign).await.map_err(|why| not_taken(name, why))?;
            if let Some(held) = held {
                return Ok(held);
            }
        }
    }

    /// What the store has of a lock.
    pub(super) async fn look(&self, name: &LeaseName) -> Result<Option<Lease>, StoreError> {
        let time_max = self.timing.lease().request_timeout();
        let subject = || format!("lease \"{name}\"");
        answer_within(time_max, subject, self.store.get(name)).await
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
                    let outcome = self.telling(|| turn.progress(), outcome(campaign)).await;
                    if let Ok(Some(_)) = outcome {
                        turn.taken();
                    }
                    return outcome.map_err(|why| not_taken(name, why));
                }
                Call::Along(along) => {
                    let campaign = self.campaign(name, Queueing::Follow, permit.take())?;
                    let round = along.go();
                    match self.telling(|| round.progress(), outcome(campaign)).await {
                        // The one that it followed has left, or was the last of this turn.
                        Err(NotWon::Busy(given_back)) => (permit, in_vain) = (given_back, Some(round)),
                        outcome => {
                            if let Ok(Some(_)) = outcome {
                                round.taken();
                            }
                            return outcome.map_err(|why| not_taken(name, why));
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
            let conditions = Conditions {
                progress_within,
                ..Conditions::of(Queueing::Line)
            };
            let campaign = self.begin(place, conditions)?;
            let held = outcome(campaign).await.map_err(|why| not_taken(place, why))?;
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
        self.begin(
            name,
            Conditions {
                max_hold: self.max_hold,
                permit,
                ..Conditions::of(queueing)
            },
        )
    }

    fn begin<'a>(&'a self, name: &'a LeaseName, conditions: Conditions) -> Result<Campaign<'a>, LockError> {
        let campaign = Campaign::begin(&self.driver, DriverHandle::ask, name, conditions);
        campaign.map_err(|why| not_taken(name, why))
    }
}

/// `None` if what was won was not taken up in time.
async fn outcome(campaign: Campaign<'_>) -> Result<Option<HeldTerm>, NotWon> {
    let won = campaign.outcome().await?;
    Ok(won.map(|won| won.held.after(won.grant.predecessor)))
}

/// Why a lock was not taken.
fn not_taken(name: &LeaseName, why: NotWon) -> LockError {
    let name = name.clone();
    match why {
        NotWon::Store(error) => LockError::Store(error),
        NotWon::Busy(_) => LockError::HeldHere(name),
        NotWon::Held(lease) => LockError::Held(lease),
        NotWon::OtherApplication(holder) => LockError::OtherApplication { name, holder },
        NotWon::Stopped => LockError::Stopped(name),
    }
}
