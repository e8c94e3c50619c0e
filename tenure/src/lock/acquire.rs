//! Taking one lock.

use super::fair::Lines;
use super::{Fairness, LockError, LockTiming, Reentrancy};
use crate::driver::{Message, NotWon, Permit, Permits, Queueing, Waiting};
use crate::held::HeldTerm;
use crate::registry::SharedStore;
use crate::sync::{broadcast, mpsc, oneshot, timeout};
use std::time::Duration;
use tenure_core::{Candidate, Event, LeaseName};

/// What a manager and its owners share.
pub(super) struct Shared {
    pub(super) store: SharedStore,
    pub(super) messages: mpsc::UnboundedSender<Message>,
    pub(super) permits: Permits,
    pub(super) candidate: Candidate,
    pub(super) timing: LockTiming,
    pub(super) reentrancy: Reentrancy,
    pub(super) fairness: Fairness,
    pub(super) lines: Lines,
    pub(super) events: broadcast::Sender<Event>,
}

/// Withdraws an attempt whose future is dropped.
struct Withdrawal<'a> {
    name: &'a LeaseName,
    messages: Option<&'a mpsc::UnboundedSender<Message>>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if let Some(messages) = self.messages {
            let name = self.name.clone();
            // A closed channel means that nothing is held any more.
            let _ = messages.send(Message::Withdraw { name });
        }
    }
}

impl Shared {
    /// Takes the lock; `None` for the patience waits as long as it takes.
    pub(super) async fn acquire(
        &self,
        name: &LeaseName,
        queueing: Queueing,
        patience: Option<Duration>,
    ) -> Result<HeldTerm, LockError> {
        let permit = self.permits.take().ok_or_else(|| LockError::TooMany {
            name: name.clone(),
            locks_max: self.permits.max(),
        })?;
        let taking = async {
            let turn = match (self.fairness, queueing) {
                (Fairness::Barging, _) => None,
                (Fairness::Fair, Queueing::OneLook) => {
                    let others = self.others_wait(name).await.map_err(LockError::Store)?;
                    if others {
                        return Err(LockError::OthersWait(name.clone()));
                    }
                    None
                }
                (Fairness::Fair, Queueing::Line | Queueing::Alone) => Some(self.turn(name).await?),
            };
            let held = self.acquire_here(name, queueing, Some(permit)).await;
            drop(turn);
            held
        };
        let Some(patience) = patience else {
            return taking.await;
        };
        timeout(patience, taking).await.unwrap_or_else(|_| {
            Err(LockError::TimedOut {
                name: name.clone(),
                waited: patience,
            })
        })
    }

    /// Takes a lease by the driver, for as long as it takes.
    pub(super) async fn acquire_here(
        &self,
        name: &LeaseName,
        queueing: Queueing,
        permit: Option<Permit>,
    ) -> Result<HeldTerm, LockError> {
        let stopped = || LockError::Stopped(name.clone());
        // Made before the answer's end, so that the driver sees that nobody waits when it is told to look.
        let mut withdrawal = Withdrawal { name, messages: None };
        let (won, answer) = oneshot::channel();
        let waiting = Waiting {
            name: name.clone(),
            won,
            messages: self.messages.clone(),
            queueing,
            permit,
        };
        self.messages
            .send(Message::Campaign(waiting))
            .map_err(|_| stopped())?;
        withdrawal.messages = Some(&self.messages);
        let outcome = answer.await;
        withdrawal.messages = None;
        match outcome {
            Ok(Ok(won)) => Ok(won.held),
            Ok(Err(NotWon::Store(error))) => Err(LockError::Store(error)),
            Ok(Err(NotWon::Busy)) => Err(LockError::HeldHere(name.clone())),
            Ok(Err(NotWon::Held(lease))) => Err(LockError::Held(lease)),
            Ok(Err(NotWon::Foreign(lease))) => Err(LockError::OtherApplication {
                name: name.clone(),
                holder: lease.holder.id,
            }),
            Ok(Err(NotWon::ForeignBefore(before))) => Err(LockError::OtherApplication {
                name: name.clone(),
                holder: before.candidate,
            }),
            Err(_) => Err(stopped()),
        }
    }
}
