use super::bond::Bond;
use super::owner::Claim;
use crate::claim::claim;
use crate::clock;
use crate::driver::{HasEnded, Message};
use crate::held::HeldTerm;
use crate::sync::{AtomicU64, Ordering, oneshot, select};
use crate::term::Phase;
use crate::{Loss, ReleaseOutcome};
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tenure_core::{
    Authority, Cause, Claimed, Departure, Fence, FenceError, FencingToken, LeaseName, Moment, Predecessor,
    ResourceName, Term,
};

/// A lock that is held: exists from being taken until it is dropped, which releases it in the background.
///
/// It is no proof of holding: ask [`authority`](Self::authority) at each use, and let the data path check the
/// [`token`](Self::token). A panic and an aborted task drop it; a guard that is leaked is extended until the
/// manager's `max_hold`, unless it is [bound](Self::bound_to) to a task.
#[must_use = "the lock is released when this is dropped"]
pub struct Lock {
    hold: Arc<Hold>,
    state: State,
    /// `None` where it goes with nothing but its guard.
    bond: Option<Arc<Bond>>,
}

/// What the handles of one owner share.
pub(super) struct Hold {
    held: HeldTerm,
    /// Handles that have not been released.
    handles: AtomicU64,
    /// When the term was last granted or asked to be extended, in nanoseconds.
    extended_at: AtomicU64,
    _claim: Option<Box<Claim>>,
}

enum State {
    Held,
    Leaving(oneshot::Receiver<Option<Departure>>),
    /// (Boxed: most guards of many are held.)
    Gone(Box<ReleaseOutcome>),
}

impl Hold {
    pub(super) fn new(held: HeldTerm, claim: Option<Claim>) -> Self {
        Self {
            held,
            handles: AtomicU64::new(0),
            extended_at: AtomicU64::new(clock::now().as_nanos()),
            _claim: claim.map(Box::new),
        }
    }

    pub(super) fn authority(&self) -> Authority {
        self.held.term().authority()
    }

    /// Asks for an extension now, without waiting for it: what is believed meanwhile is true already. Once in
    /// `pause` at most, however many handles are taken, so that no loop of them fills the driver's queue.
    fn extend(&self, pause: Duration) {
        let now = clock::now();
        let is_due = |at| (Moment::from_nanos(at).after(pause) <= now).then_some(now.as_nanos());
        let asks = self
            .extended_at
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_due);
        if asks.is_err() {
            return;
        }
        let (name, token) = (self.held.name().clone(), self.held.token());
        self.held.tell(Message::Extend { name, token });
    }

    /// One handle goes; the last one ends the term, without waiting for that.
    pub(super) fn let_one_go(&self) {
        if self.count_one_less() == 0 && !self.held.term().has_been_ended() {
            self.held.end(None);
        }
    }

    /// How many handles are left when one has gone.
    fn count_one_less(&self) -> u64 {
        self.handles.fetch_sub(1, Ordering::SeqCst) - 1
    }
}

impl Lock {
    pub(super) fn first(hold: Arc<Hold>) -> Self {
        hold.handles.store(1, Ordering::SeqCst);
        Self::of(hold)
    }

    fn of(hold: Arc<Hold>) -> Self {
        let (state, bond) = (State::Held, None);
        Self { hold, state, bond }
    }

    /// One more handle, for which the term is extended; `None` if the last one was released a moment ago.
    pub(super) fn another(hold: Arc<Hold>, pause: Duration) -> Option<Self> {
        let one_more = |handles| (handles > 0).then_some(handles + 1);
        hold.handles
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more)
            .ok()?;
        hold.extend(pause);
        Some(Self::of(hold))
    }

    /// What lets this handle go, when what it is bound to has ended.
    pub(crate) fn bond(&mut self) -> Arc<Bond> {
        let was_released = !matches!(self.state, State::Held);
        let bond = self
            .bond
            .get_or_insert_with(|| Arc::new(Bond::new(&self.hold, was_released)));
        bond.clone()
    }

    fn is_gone(&self) -> bool {
        !matches!(self.state, State::Held) || self.is_gone_by_its_bond()
    }

    fn is_gone_by_its_bond(&self) -> bool {
        self.bond.as_ref().is_some_and(|bond| bond.is_gone())
    }

    /// Returns when it is gone with what it was bound to.
    async fn bond_over(&self) {
        match &self.bond {
            Some(bond) => bond.over().await,
            None => pending().await,
        }
    }

    /// It goes. Whether it did not go before.
    fn go(&self) -> bool {
        self.bond.as_ref().is_none_or(|bond| bond.go())
    }

    pub(crate) fn bind(&self, has_ended: HasEnded) {
        let (name, token) = (self.name().clone(), self.token());
        self.hold.held.tell(Message::Bind {
            name,
            token,
            has_ended,
        });
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        self.hold.held.name()
    }

    /// The fencing token: goes with every write, and is checked by the data path. Each time the lock is taken
    /// it is greater; handles of one owner share it.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.hold.held.token()
    }

    /// The term before this one, if the store still knew. One that has [expired](tenure_core::End::Expired)
    /// may have ended in the middle of its work.
    #[must_use]
    pub fn predecessor(&self) -> Option<&Predecessor> {
        self.hold.held.predecessor()
    }

    /// What this process may believe now. Reads the clock anew each time, and depends on no other thread.
    /// None once this handle was released, or has gone with its task.
    #[must_use]
    pub fn authority(&self) -> Authority {
        match self.is_gone() {
            false => self.hold.authority(),
            true => Authority::None,
        }
    }

    /// What is left until authority ends, unless a renewal extends it. Zero once it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self.is_gone() {
            false => self.hold.held.term().remaining(),
            true => Duration::ZERO,
        }
    }

    /// When authority ends, unless a renewal extends it, on the clock of [`clock_now`](crate::clock_now). In
    /// the past once it is over, and once this handle has gone.
    #[must_use]
    pub fn until(&self) -> Moment {
        match self.is_gone() {
            false => self.hold.held.term().until(),
            true => Moment::ZERO,
        }
    }

    /// The token, if the lock may still be held.
    ///
    /// # Errors
    /// [`Loss`]: it is over. A lock that was lost cannot be extended; take it anew.
    pub fn check(&self) -> Result<FencingToken, Loss> {
        self.authority().token().ok_or_else(|| self.loss())
    }

    /// Returns when the lock is over, and why: at once when another holder was seen, at the deadline if the
    /// store does not answer.
    ///
    /// It has a timer of its own, so it fires at the deadline even if the manager's thread is held up; then
    /// up to 20 ms later, for that thread knows the cause. What must have stopped by then is for
    /// [`guard`](Self::guard). Needs a tokio runtime with its I/O and time drivers, and while it is awaited
    /// one file descriptor for its timer. Without one left it fires at the deadline, too, but after the
    /// machine has slept up to 250 ms late.
    pub async fn lost(&self) -> Loss {
        if self.is_gone() {
            return self.loss_of_what_is_gone();
        }
        select! {
            biased;
            loss = self.hold.held.lost() => loss,
            () = self.bond_over() => self.loss_by(Cause::GivenBack),
        }
    }

    /// Returns when new work must no longer be begun: when authority is doubtful or gone. An extension may
    /// end the doubt again, unless the lock is to be given up on somebody's wish ([`Authority::Ending`]).
    /// Needs what [`lost`](Self::lost) needs.
    pub async fn doubted(&self) {
        if self.is_gone() {
            return;
        }
        select! {
            biased;
            () = self.bond_over() => {}
            () = self.hold.held.doubted() => {}
        }
    }

    /// Runs `work`, and drops it when the lock is lost: no step of it begins once authority is none.
    ///
    /// A future is dropped at one of its awaits: what blocks its thread goes on until it returns there. What
    /// it has spawned (`tokio::spawn`, `spawn_blocking`, a thread) goes on, too, unless it is ended when
    /// `work` is dropped. Needs what [`lost`](Self::lost) needs: many locks that are guarded at once need as
    /// many file descriptors.
    ///
    /// # Errors
    /// [`Loss`]: `work` was dropped unfinished.
    pub async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Loss> {
        if self.is_gone() {
            return Err(self.loss_of_what_is_gone());
        }
        let while_bound = async {
            let mut work = pin!(work);
            poll_fn(|context| match self.is_gone() {
                false => work.as_mut().poll(context),
                true => Poll::Pending,
            })
            .await
        };
        select! {
            biased;
            outcome = self.hold.held.guard(while_bound) => outcome,
            () = self.bond_over() => Err(self.loss_by(Cause::GivenBack)),
        }
    }

    /// Lease and token of this lock: what its work shows to every fence.
    ///
    /// It does not keep the lease: hold the `Lock` for as long as the work goes on.
    #[must_use]
    pub fn term(&self) -> Term {
        Term::new(self.name().clone(), self.token())
    }

    /// Claims `resource` for this lock in its fence: before first reading what is to be changed.
    ///
    /// It claims again until the lock is to end, unless that is useless ([`FenceError::ends_a_claim`]), and
    /// logs that: a transaction that an earlier holder has left open keeps the mark, or the fence is away.
    /// What the fence has no word for (`Fault::Internal`) ends it after 30 s. `tokio::time::timeout` is the
    /// way to wait for less. It waits for the caller's own open transaction, too: claim before the first one
    /// begins.
    ///
    /// # Errors
    /// [`FenceError::Stale`]: a later holder has claimed it, and this one's time is over, whatever it
    /// believes.
    pub async fn claim(&self, fence: &dyn Fence, resource: &ResourceName) -> Result<Claimed, FenceError> {
        claim(&self.hold.held, fence, resource).await
    }

    /// Releases the lock, and says what it found. Call it when the work has ended.
    ///
    /// Authority is none from this moment, before the release is sent. If the store does not answer, the
    /// release is repeated until the lock has surely expired, at most for about one ttl; each try that fails
    /// is an [`Event::ReleaseFailed`](crate::Event::ReleaseFailed). Idempotent: a second call answers the
    /// same. Dropping the future stops the wait, not the release.
    pub async fn release(&mut self) -> ReleaseOutcome {
        if matches!(self.state, State::Held) {
            self.state = self.leave();
        }
        if let State::Leaving(departed) = &mut self.state {
            let told = departed.await.ok();
            self.state = State::Gone(Box::new(self.hold.held.outcome(told)));
        }
        match &self.state {
            State::Gone(release) => ReleaseOutcome::clone(release),
            State::Held | State::Leaving(_) => unreachable!("it was left above, and the answer awaited"),
        }
    }

    /// This handle goes; the last one ends the term.
    fn leave(&self) -> State {
        // Looked at while this handle still counts: once it does not, another that goes now may end the term.
        let loss = (self.authority() == Authority::None).then(|| self.loss());
        if !self.go() {
            let loss = loss.unwrap_or_else(|| self.loss());
            return State::Gone(Box::new(ReleaseOutcome::LostBefore(loss)));
        }
        let others = self.hold.count_one_less();
        // However many others there are: what was lost is held by none of them.
        if let Some(loss) = loss {
            return State::Gone(Box::new(ReleaseOutcome::LostBefore(loss)));
        }
        if others > 0 {
            return State::Gone(Box::new(ReleaseOutcome::StillHeld { handles: others }));
        }
        State::Leaving(self.hold.held.leave())
    }

    /// Given back, unless that found it lost before.
    fn loss_of_what_is_gone(&self) -> Loss {
        if let State::Gone(release) = &self.state
            && let ReleaseOutcome::LostBefore(loss) = &**release
        {
            return loss.clone();
        }
        self.loss_by(Cause::GivenBack)
    }

    fn loss(&self) -> Loss {
        match self.hold.held.term().phase() {
            Phase::Running | Phase::Ending if self.is_gone_by_its_bond() => self.loss_by(Cause::GivenBack),
            Phase::Running | Phase::Ending | Phase::Over(_) => self.hold.held.loss(),
        }
    }

    fn loss_by(&self, cause: Cause) -> Loss {
        self.hold.held.loss_by(cause)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if matches!(self.state, State::Held) && self.go() {
            self.hold.let_one_go();
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("name", self.name())
            .field("token", &self.token())
            .field("authority", &self.authority())
            .finish_non_exhaustive()
    }
}
