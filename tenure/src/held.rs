//! A term in somebody's hands: what [`Leadership`](crate::Leadership) and [`Lock`](crate::Lock) have in
//! common.

use crate::clock::BootTimer;
use crate::driver::{DriverHandle, Message};
use crate::release::cause_of_loss;
use crate::sync::{oneshot, select, timeout, watch};
use crate::term::{Phase, SharedTerm};
use crate::{Loss, ReleaseOutcome};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tenure_core::{
    Authority, Cause, Departure, Fault, FencingToken, LeaseName, Predecessor, Released, StoreError,
};

/// Lasts from winning until it is dropped, which ends the term and releases the lease in the background.
pub(crate) struct HeldTerm {
    name: LeaseName,
    term: Arc<SharedTerm>,
    driver: DriverHandle,
    // (Boxed: most of many locks have none.)
    predecessor: Option<Box<Predecessor>>,
}

impl HeldTerm {
    pub(crate) fn new(name: LeaseName, term: Arc<SharedTerm>, driver: DriverHandle) -> Self {
        Self {
            name,
            term,
            driver,
            predecessor: None,
        }
    }

    /// The same, which remembers the term before it.
    pub(crate) fn after(mut self, predecessor: Option<Predecessor>) -> Self {
        self.predecessor = predecessor.map(Box::new);
        self
    }

    pub(crate) fn predecessor(&self) -> Option<&Predecessor> {
        self.predecessor.as_deref()
    }

    pub(crate) fn name(&self) -> &LeaseName {
        &self.name
    }

    pub(crate) fn term(&self) -> &SharedTerm {
        &self.term
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.term.token()
    }

    /// Returns when authority is gone. Has a timer of its own: needs no other thread.
    pub(crate) async fn over(&self) {
        self.until(|authority| authority == Authority::None).await;
    }

    /// Returns when no new work is to begin: the term is ending, or over.
    pub(crate) async fn ending(&self) {
        self.until(|authority| matches!(authority, Authority::Ending { .. } | Authority::None))
            .await;
    }

    /// Returns when authority is so, or gone at least: looks with each phase, and at the deadline.
    async fn until(&self, is_so: impl Fn(Authority) -> bool) {
        let mut phase = self.term.phases();
        let timer = BootTimer::new();
        loop {
            phase.borrow_and_update();
            let until = self.term.until();
            if is_so(self.term.authority()) {
                return;
            }
            changed_or(&mut phase, timer.wait_until(until)).await;
        }
    }

    /// Returns when the term is over, and why: at most [`COURTESY`] after authority is gone.
    pub(crate) async fn lost(&self) -> Loss {
        self.over().await;
        self.loss_by(cause_in_time(self.term.phases()).await)
    }

    /// That it is over, and why as far as it is known by now.
    pub(crate) fn loss(&self) -> Loss {
        self.loss_by(match self.term.phase() {
            Phase::Over(cause) => *cause,
            Phase::Running | Phase::Ending => Cause::Deadline(None),
        })
    }

    pub(crate) fn loss_by(&self, cause: Cause) -> Loss {
        let (name, token) = (self.name.clone(), self.token());
        Loss { name, token, cause }
    }

    /// Runs `work`, and drops it once authority is gone. No step of it begins after that, however late a
    /// timer is.
    pub(crate) async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        // The work is dropped with this, before anybody waits for the cause.
        let outcome = select! {
            biased;
            () = self.over() => None,
            outcome = self.while_held(work) => outcome,
        };
        match outcome {
            Some(outcome) => Ok(outcome),
            None => Err(self.loss_by(cause_in_time(self.term.phases()).await)),
        }
    }

    /// Runs `work`, of which no step begins once authority is gone: looks at the clock before each. `None`
    /// where the next one would.
    pub(crate) async fn while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| match self.term.authority() {
            Authority::None => Poll::Ready(None),
            Authority::Held { .. } | Authority::Doubtful { .. } | Authority::Ending { .. } => {
                work.as_mut().poll(context).map(Some)
            }
        })
        .await
    }

    /// Returns when authority is doubtful or gone.
    pub(crate) async fn doubted(&self) {
        let mut phase = self.term.phases();
        let timer = BootTimer::new();
        loop {
            let (ending, over) = match &*phase.borrow_and_update() {
                Phase::Running => (false, false),
                Phase::Ending => (true, false),
                Phase::Over(_) => (false, true),
            };
            let belief = self.term.belief();
            if ending || over || !matches!(self.term.authority(), Authority::Held { .. }) {
                return;
            }
            changed_or(&mut phase, timer.wait_until(belief.doubt_from)).await;
        }
    }

    /// Says something about this term to the driver. One that is gone holds nothing any more.
    pub(crate) fn tell(&self, message: Message) {
        let _ = self.driver.tell(message);
    }

    /// Tells the progress gate that somebody still works, or waits.
    pub(crate) fn progress(&self) {
        self.tell_of_progress(self.term.progress());
    }

    /// From now on nobody tells of progress any more, and there is none to wait for.
    pub(crate) fn assure_progress(&self) {
        self.tell_of_progress(self.term.assure_progress());
    }

    fn tell_of_progress(&self, is_awaited: bool) {
        if is_awaited {
            let name = self.name.clone();
            self.tell(Message::Progress { name });
        }
    }

    /// As [`end`](Self::end). What became of it is told, unless the driver ends before.
    pub(crate) fn leave(&self) -> oneshot::Receiver<Option<Departure>> {
        let (departed, answer) = oneshot::channel();
        self.end(Some(departed));
        answer
    }

    /// `told` by the driver, or by nobody as it has ended.
    pub(crate) fn outcome(&self, told: Option<Option<Departure>>) -> ReleaseOutcome {
        match told {
            Some(Some(Departure::Answered(Released::Vacated))) => ReleaseOutcome::Released,
            Some(Some(Departure::Answered(Released::NotYours(now)))) => {
                let cause = cause_of_loss(now.as_deref(), self.token());
                ReleaseOutcome::LostBefore(self.loss_by(cause))
            }
            Some(Some(Departure::Unconfirmed { error, .. })) => ReleaseOutcome::Unconfirmed(error),
            Some(None) => ReleaseOutcome::LostBefore(self.loss()),
            None => {
                let message = format!(
                    "lease \"{}\": the thread that renews it ended during the release; it may be held until its ttl is over",
                    self.name
                );
                ReleaseOutcome::Unconfirmed(StoreError::unknown(Fault::Internal, message))
            }
        }
    }

    /// The work has ended: authority is none from this moment, and the lease is released.
    pub(crate) fn end(&self, departed: Option<oneshot::Sender<Option<Departure>>>) {
        self.term.end_belief();
        let is_waited_for = departed.is_some();
        let message = Message::WorkEnded {
            name: self.name.clone(),
            token: self.token(),
            departed,
        };
        if is_waited_for {
            // A driver that is gone drops the answer's other end.
            let _ = self.driver.ask(message);
        } else {
            self.tell(message);
        }
    }
}

impl Drop for HeldTerm {
    fn drop(&mut self) {
        if !self.term.has_been_ended() {
            self.end(None);
        }
    }
}

/// How long the news of a loss waits for its cause. Authority is none meanwhile.
const COURTESY: Duration = Duration::from_millis(20);

/// The driver's thread passes the same deadline and knows the cause; if it is held up, the cause is all that
/// is missing.
async fn cause_in_time(mut phase: watch::Receiver<Phase>) -> Cause {
    let over = phase.wait_for(|phase| matches!(phase, Phase::Over(_)));
    match timeout(COURTESY, over).await {
        Ok(Ok(phase)) => match &*phase {
            Phase::Over(cause) => Cause::clone(cause),
            Phase::Running | Phase::Ending => Cause::Deadline(None),
        },
        Ok(Err(_)) | Err(_) => Cause::Deadline(None),
    }
}

async fn changed_or(phase: &mut watch::Receiver<Phase>, timer: impl Future<Output = ()>) {
    select! {
        biased;
        // Its other end is in the term, which whoever waits here holds: it is never gone.
        _ = phase.changed() => {}
        () = timer => {}
    }
}
