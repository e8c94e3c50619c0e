//! The gate: lets terms in by their tokens, and keeps a later one waiting until the older ones have left.

mod admission;
mod resources;
mod seat;

pub(crate) use admission::Succession;
pub use admission::{Admission, Superseded};

use crate::refusal::Refusal;
use resources::Resources;
use seat::{Seat, Step};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Fault, Fence, FenceError, FencingToken, LeaseName, ResourceName, StoreError, Term};
use tokio::time::{Instant, timeout_at};

/// How long a term waits at the gate, unless [`Gate::wait_at_most`] says otherwise.
const WAIT_DEFAULT: Duration = Duration::from_secs(10);

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
/// - Marks that are raised in the `Fence` behind the gate's back are seen at the next claim.
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
    /// terms to end. Default: 10 s. Larger: a take-over succeeds behind slower requests. Smaller: its client
    /// is told sooner to come again.
    #[must_use]
    pub fn wait_at_most(self, wait: Duration) -> Self {
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
        // Ends: each turn claims at most once, waits for a change that somebody else makes, or returns; the
        // deadline ends the waiting.
        loop {
            let mut change = pin!(seat.changed());
            // In place before looking, so that a change in between is not missed.
            change.as_mut().enable();
            match seat.step(term) {
                Step::Enters(admission) => return Ok(admission),
                Step::Stale { mark } => return Err(self.refuse(&seat, term, mark)),
                Step::Crowded => return Err(seat.crowded()),
                Step::Claims => self.claim(&seat, term, deadline).await?,
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
        self.fence.note_refused(&FenceError::Stale {
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
            self.fence.note_refused(&FenceError::Foreign {
                resource: resource.clone(),
                lease: term.lease.clone(),
                token: term.token,
                owner: owner.clone(),
            });
        }
    }

    /// An admitted request was refused the rest of its body, and failed for that.
    pub(crate) fn note_superseded(&self, superseded: &Superseded) {
        self.fence.note_refused(&FenceError::Stale {
            resource: superseded.resource.clone(),
            token: superseded.token,
            mark: superseded.mark,
        });
    }

    /// Raises the mark in the fence, then here. One at a time for each resource: a thousand first requests of
    /// a term make one claim.
    async fn claim(&self, seat: &Arc<Seat>, term: &Term, deadline: Instant) -> Result<(), Refusal> {
        let claim = async {
            let _turn = seat.claim_turn().await;
            if !seat.must_claim(term) {
                return Ok(());
            }
            match self.fence.claim(seat.resource(), term).await {
                Ok(_) => {
                    seat.hold(term);
                    Ok(())
                }
                Err(FenceError::Stale { mark, .. }) => {
                    seat.raise(mark);
                    Err(seat.stale(term.token, mark))
                }
                Err(FenceError::Foreign {
                    resource,
                    lease,
                    token,
                    owner,
                }) => Err(Refusal::Foreign {
                    resource,
                    token,
                    lease,
                    owner,
                }),
                Err(FenceError::Future {
                    resource,
                    token,
                    horizon,
                }) => Err(Refusal::Future {
                    resource,
                    token,
                    horizon,
                }),
                Err(FenceError::Store(error)) => Err(seat.unavailable(error)),
                Err(error @ FenceError::Unclaimed { .. }) => {
                    Err(seat.unavailable(StoreError::unknown(Fault::Internal, error.to_string())))
                }
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

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
