use crate::claim::claim;
use crate::driver::{Message, Won};
use crate::held::HeldTerm;
use crate::sync::{select, watch};
use crate::term::Phase;
use crate::{Loss, ReleaseOutcome};
use std::fmt;
use std::future::Future;
use std::time::Duration;
use tenure_core::{
    Authority, Claimed, Fence, FenceError, FencingToken, Grant, LeaseName, Moment, Predecessor, ResourceName,
    Term,
};

/// One term: exists from winning until it is dropped.
///
/// It is no proof of leading: ask [`authority`](Self::authority) at each use, and let the data path check the
/// [`token`](Self::token). Dropping it ends the term and releases the lease, in the background; so drop it
/// only when the work has ended.
#[must_use = "the lease is given back when this is dropped"]
pub struct Leadership(HeldTerm, Grant);

impl Leadership {
    pub(super) fn new(won: Won) -> Self {
        Self(won.held, won.grant)
    }

    /// The lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        self.0.name()
    }

    /// The fencing token of this term: goes with every write, and is checked by the data path.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.0.token()
    }

    /// Lease and token of this term: what its work shows to every fence.
    ///
    /// It does not keep the lease: hold the `Leadership` for as long as the work goes on.
    #[must_use]
    pub fn term(&self) -> Term {
        Term::new(self.name().clone(), self.token())
    }

    /// How many terms the lease has had, this one included. For people.
    #[must_use]
    pub fn terms(&self) -> u64 {
        self.1.terms
    }

    /// The term before this one, if the store still knew.
    #[must_use]
    pub fn predecessor(&self) -> Option<&Predecessor> {
        self.1.predecessor.as_ref()
    }

    /// What this process may believe now. Reads the clock anew each time, and depends on no other thread.
    #[must_use]
    pub fn authority(&self) -> Authority {
        self.0.term().authority()
    }

    /// What is left until authority ends, unless a renewal extends it. Zero once it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.term().remaining()
    }

    /// When authority ends, unless a renewal extends it, on the clock of [`clock_now`](crate::clock_now). In
    /// the past once it is over, and not the moment at which it was.
    #[must_use]
    pub fn until(&self) -> Moment {
        self.0.term().until()
    }

    /// Returns when the term is over, and why: at once when another holder was seen, at the deadline if the
    /// store does not answer.
    ///
    /// It has a timer of its own, so it fires at the deadline even if the election's thread is held up; then
    /// up to 20 ms later, for that thread knows the cause. What must have stopped by then is for
    /// [`guard`](Self::guard). Needs a tokio runtime with its I/O and time drivers, and while it is awaited
    /// one file descriptor for its timer. Without one left it fires at the deadline, too, but after the
    /// machine has slept up to 250 ms late.
    pub async fn lost(&self) -> Loss {
        self.0.lost().await
    }

    /// Returns when new work must no longer be begun: when authority is doubtful or gone, for whatever
    /// reason. A renewal may end the doubt again, unless the term is being ended: ask
    /// [`authority`](Self::authority). Needs what [`lost`](Self::lost) needs.
    pub async fn doubted(&self) {
        self.0.doubted().await;
    }

    /// Returns when the term is over or is to be ended on somebody's wish. Needs what [`lost`](Self::lost)
    /// needs.
    pub async fn interrupted(&self) {
        let mut phase = self.0.term().phases();
        select! {
            biased;
            () = self.0.over() => {}
            _ = phase.wait_for(|phase| *phase == Phase::Ending) => {}
        }
    }

    /// As [`HeldTerm::while_held`].
    pub(super) async fn while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.while_held(work).await
    }

    /// For whoever waits for its end and must not hold it.
    pub(super) fn phases(&self) -> watch::Receiver<Phase> {
        self.0.term().phases()
    }

    /// Whether the term is being ended: on somebody's wish, or by
    /// [`begin_to_step_down`](Self::begin_to_step_down).
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.0.term().phase() == Phase::Ending
    }

    /// Runs `work`, and drops it when the term is over: no step of it begins once authority is none.
    ///
    /// A future is dropped at one of its awaits: what blocks its thread goes on until it returns there. What
    /// it has spawned (`tokio::spawn`, `spawn_blocking`, a thread) goes on, too, unless it is ended when
    /// `work` is dropped. Needs what [`lost`](Self::lost) needs.
    ///
    /// # Errors
    /// [`Loss`]: `work` was dropped unfinished.
    pub async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        self.0.guard(work).await
    }

    /// Claims `resource` for this term in its fence: before the term first reads what it will change.
    ///
    /// It claims again until this term is to end, by a wish to step down or by itself, unless that is useless
    /// ([`FenceError::ends_a_claim`]), and logs that: a transaction that a leader has died in keeps the mark
    /// until the server hears of it (on PostgreSQL `idle_in_transaction_session_timeout` bounds that), and a
    /// fence may be away. What the fence has no word for (`Fault::Internal`) ends it after 30 s.
    /// `tokio::time::timeout` is the way to wait for less. It waits for the caller's own open transaction,
    /// too: claim before the first one begins.
    ///
    /// # Errors
    /// [`FenceError::Stale`]: a later term has claimed it, and this one is over, whatever it believes. Else
    /// as [`Fence::claim`]; where the term was to end before the claim came through, what kept it last.
    pub async fn claim(&self, fence: &dyn Fence, resource: &ResourceName) -> Result<Claimed, FenceError> {
        claim(&self.0, fence, resource).await
    }

    /// Tells the progress gate that the work is not stuck. Cheap: may be called in a loop.
    pub fn progress(&self) {
        self.0.progress();
    }

    /// Marks the term as ending: authority says so from now, renewals go on until this is dropped.
    pub fn begin_to_step_down(&self) {
        self.0.term().begin_to_end();
        let (name, token) = (self.name().clone(), self.token());
        self.0.tell(Message::StepDown { name, token });
    }

    /// Ends the term and releases the lease, and says what became of it. Call it when the work has ended.
    ///
    /// Authority is none from this moment, before the release is sent. If the store does not answer, the
    /// release is repeated until the lease has surely expired, at most for about one ttl; each try that fails
    /// is an [`Event::ReleaseFailed`](crate::Event::ReleaseFailed). Dropping the future stops the wait, not
    /// the release.
    pub async fn step_down(self) -> ReleaseOutcome {
        let departed = self.0.leave();
        self.0.outcome(departed.await.ok())
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("name", self.name())
            .field("token", &self.token())
            .field("authority", &self.authority())
            .finish_non_exhaustive()
    }
}
