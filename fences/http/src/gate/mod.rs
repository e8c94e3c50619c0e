//! The gate: lets terms in by their tokens, and keeps a later one waiting until the older ones have left.

mod admission;
mod clock;
mod holder;
mod resources;
mod seat;
mod warnings;

pub(crate) use admission::Succession;
pub use admission::{Admission, Superseded};

use crate::refusal::Refusal;
use clock::Reading;
use holder::PATIENCE;
use resources::Resources;
use seat::{Seat, Step};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Fault, Fence, FenceError, FencingToken, LeaseName, ResourceName, StoreError, Term};
use tokio::time::{Instant, timeout, timeout_at};

/// How long a term waits at the gate, unless [`Gate::wait_at_most`] says otherwise.
const WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// Longest wait, which stands for one without an end: no clock counts as far as a duration goes.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Longest time until a fence that was asked again, and does not answer, is asked once more.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// A fence of a whole service: one mark per resource, and a count of who is inside.
///
/// A fence in a database refuses in the very transaction that writes. A service's handler is no transaction:
/// between its check and its effect a later term could claim. So the gate lets a request in and knows when it
/// has left, and this holds for each resource:
/// - **Only the term that holds the mark gets in.** A lower token is stale. A higher one claims: it raises
///   the mark in the [`Fence`] first, and in this gate then.
/// - **A later term gets in only when every older one has left.** What an admitted request does, it has done
///   before any later term sees the resource.
/// - **The mark is kept by the [`Fence`]**, so it outlives this process if that does.
///
/// # To ensure correctness
/// - **One process, one gate** for a resource: two replicas behind a load balancer do not know who is inside
///   the other. There, let the handler enter the fence of its database with the token of its
///   [`Admission`]; the layer then only refuses early.
/// - Marks that are raised in the `Fence` behind the gate's back, as by an operator, are seen at the next
///   claim, and with the first request that comes a second or two after the fence was last asked. If its
///   store does not answer, the term that was confirmed last goes on.
pub struct Gate {
    fence: Arc<dyn Fence>,
    resources: Resources,
    wait: Duration,
}

impl Gate {
    /// A gate whose marks are kept by `fence`.
    pub fn new(fence: Arc<dyn Fence>) -> Self {
        Self {
            fence,
            resources: Resources::default(),
            wait: WAIT_DEFAULT,
        }
    }

    /// How long a term waits for the fence's store to answer its claim and, after that, for requests of older
    /// terms to end. Default: 10 s; at most a year. Larger: a take-over succeeds behind slower requests.
    /// Smaller: its client is told sooner to come again.
    #[must_use]
    pub fn wait_at_most(self, wait: Duration) -> Self {
        let wait = wait.min(WAIT_MAX);
        Self { wait, ..self }
    }

    /// Lets a term in, or refuses it. The first of a term claims the resource.
    ///
    /// Cancelling: nothing is left inside; the mark may have been raised.
    ///
    /// Needs a tokio runtime with its timer.
    ///
    /// # Errors
    /// [`Refusal::Stale`], [`Refusal::Foreign`], [`Refusal::Future`], [`Refusal::OlderInside`],
    /// [`Refusal::Crowded`], [`Refusal::Unavailable`]: the term was not let in.
    pub async fn admit(&self, resource: &ResourceName, term: &Term) -> Result<Admission, Refusal> {
        let seat = self.resources.seat(resource)?;
        if let Step::Enters(admission) = seat.step(term) {
            return Ok(admission);
        }
        let _waits = seat.wait_in_line()?;
        let deadline = Instant::now() + self.wait;
        // Ends: each turn claims or asks at most once, waits for a change that somebody else makes, or
        // returns; the deadline ends the waiting, and patience that for an answer.
        loop {
            let mut change = pin!(seat.changed());
            // In place before looking, so that a change in between is not missed.
            change.as_mut().enable();
            match seat.step(term) {
                Step::Enters(admission) => return Ok(admission),
                Step::Stale { mark } => return Err(self.refuse(&seat, term, mark)),
                Step::Crowded => return Err(seat.crowded()),
                Step::Claims => self.claim(&seat, term, deadline).await?,
                Step::Asks => self.ask_again(&seat, term).await?,
                Step::Awaits { until } => {
                    let _late = timeout_at(until, change).await;
                }
                Step::Waits { inside } => {
                    if timeout_at(deadline, change).await.is_err() {
                        return Err(seat.older_inside(term.token, inside, self.wait));
                    }
                }
            }
        }
    }

    /// Refuses by what the fence has told before, and tells it, so that it is counted beside the mark.
    fn refuse(&self, seat: &Seat, term: &Term, mark: FencingToken) -> Refusal {
        self.fence.count_refusal(&FenceError::Stale {
            resource: seat.resource().clone(),
            token: term.token,
            mark,
        });
        seat.stale(term.token, mark)
    }

    /// A term of a lease that does not protect the resource was refused, without asking the fence.
    pub(crate) fn note_foreign(&self, resource: &ResourceName, term: &Term, owner: &LeaseName) {
        // Whatever a request names is no resource yet: only beside a mark is there a place for a count.
        if self.resources.has_mark(resource) {
            self.fence.count_refusal(&FenceError::Foreign {
                resource: resource.clone(),
                lease: term.lease.clone(),
                token: term.token,
                owner: owner.clone(),
            });
        }
    }

    /// An admitted request was refused the rest of its body, and failed for that.
    pub(crate) fn note_superseded(&self, superseded: &Superseded) {
        self.fence.count_refusal(&FenceError::Stale {
            resource: superseded.resource.clone(),
            token: superseded.token,
            mark: superseded.mark,
        });
    }

    /// Asks the fence whether the term that it has confirmed still holds the mark.
    async fn ask_again(&self, seat: &Arc<Seat>, term: &Term) -> Result<(), Refusal> {
        let Some(asking) = seat.begin_to_ask(term) else {
            return Ok(());
        };
        let fence = Arc::clone(&self.fence);
        // It goes on when it is no longer waited for: a late answer counts as well.
        let answer = tokio::spawn(async move {
            let check = fence.check(asking.seat().resource(), &asking.term);
            let answer = timeout(ANSWER_TIME_MAX, check).await.unwrap_or_else(|_| {
                let message = format!("no answer within {ANSWER_TIME_MAX:?}");
                Err(FenceError::Store(StoreError::not_applied(
                    Fault::TimedOut,
                    message,
                )))
            });
            asking.heard(&answer);
            answer
        });
        match timeout(PATIENCE, answer).await {
            // It may claim anew what the fence has forgotten.
            Ok(Ok(Ok(()) | Err(FenceError::Store(_) | FenceError::Unclaimed { .. }))) => Ok(()),
            Ok(Ok(Err(refusal))) => Err(refused(seat, term, refusal)),
            // Late, or broken off.
            Err(_) | Ok(Err(_)) => Ok(()),
        }
    }

    /// Raises the mark in the fence, then here. One at a time for each resource: a thousand first requests of
    /// a term make one claim.
    async fn claim(&self, seat: &Arc<Seat>, term: &Term, deadline: Instant) -> Result<(), Refusal> {
        let claim = async {
            let _turn = seat.claim_turn().await;
            if !seat.must_claim(term) {
                return Ok(());
            }
            let claimed_at = Reading::now();
            match self.fence.claim(seat.resource(), term).await {
                Ok(_) => {
                    seat.hold(term, claimed_at);
                    Ok(())
                }
                Err(error) => Err(refused(seat, term, error)),
            }
        };
        // A claim that is given up may still be applied. That is safe: nobody was let in by it, and it only
        // refuses what was refused already.
        timeout_at(deadline, claim).await.unwrap_or_else(|_| {
            Err(seat.unavailable(StoreError::unknown(
                Fault::TimedOut,
                format!(
                    "the fence did not answer a claim of \"{}\" within {:?}",
                    seat.resource(),
                    self.wait
                ),
            )))
        })
    }
}

/// The fence's refusal, which it has counted itself.
fn refused(seat: &Seat, term: &Term, error: FenceError) -> Refusal {
    match error {
        FenceError::Stale { mark, .. } => {
            seat.raise(mark);
            seat.stale(term.token, mark)
        }
        FenceError::Foreign {
            resource,
            lease,
            token,
            owner,
        } => Refusal::Foreign {
            resource,
            token,
            lease,
            owner,
        },
        FenceError::Future {
            resource,
            token,
            horizon,
            ..
        } => Refusal::Future {
            resource,
            token,
            horizon,
        },
        FenceError::Store(error) => seat.unavailable(error),
        // No claim is refused as unclaimed; nor is what a later fence may say an admission.
        error => seat.unavailable(StoreError::unknown(Fault::Internal, error.to_string())),
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
