//! One resource: its mark, and who is inside.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{
    Bump, Claimed, Fault, FenceError, FencingToken, Horizon, LeaseName, Mark, ResourceName, Ruling,
    StoreError, Term, bump_clock_ms, bumped, decide_claim, decide_entry, horizon,
};
use tokio::sync::Notify;

/// How long one claim waits for the writes of earlier terms that are inside. After that it may be made again.
pub const CLAIM_WAIT_MAX: Duration = Duration::from_secs(5);

/// One resource. Its lock is held for a few instructions and never across an await.
pub(crate) struct Gate {
    pub(crate) resource: ResourceName,
    state: Mutex<State>,
    /// Told when the last write of an earlier term has left.
    emptied: Notify,
}

struct State {
    lease: Option<LeaseName>,
    mark: Option<FencingToken>,
    /// The mark before this one.
    previous: Option<FencingToken>,
    /// Whether the mark is kept, and nobody of an earlier term is inside: only then its term is admitted.
    open: bool,
    bumped: bool,
    /// Writes inside of the term that holds the mark.
    entered: u64,
    /// Writes inside of earlier terms.
    earlier: u64,
    refused: u64,
    last_refused: Option<FencingToken>,
}

impl Gate {
    pub(crate) fn new(resource: ResourceName) -> Self {
        Self::with(
            resource,
            State {
                lease: None,
                mark: None,
                previous: None,
                open: false,
                bumped: false,
                entered: 0,
                earlier: 0,
                refused: 0,
                last_refused: None,
            },
        )
    }

    /// A gate as the file has it. Nobody is inside: what a process had begun ended with it.
    pub(crate) fn restored(mark: Mark) -> Self {
        let gate = Self::new(mark.resource);
        {
            let mut state = gate.lock();
            state.lease = mark.lease;
            state.mark = Some(mark.token);
            state.open = !mark.bumped;
            state.bumped = mark.bumped;
            state.refused = mark.refused;
            state.last_refused = mark.last_refused;
        }
        gate
    }

    fn with(resource: ResourceName, state: State) -> Self {
        Self {
            resource,
            state: Mutex::new(state),
            emptied: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be kept; `None` if nobody has raised the mark yet.
    pub(crate) fn kept(&self) -> Option<Mark> {
        let state = self.lock();
        state.mark.map(|token| state.shown(&self.resource, token))
    }

    /// Begins a claim: raises the mark in memory, so that every earlier term is refused from here on, also if
    /// the claim is not finished. `None`: this term has claimed, and nothing is left to do.
    pub(crate) fn raise(&self, term: &Term, clock_ms: u64) -> Result<Option<Raised>, FenceError> {
        let mut state = self.lock();
        let limit = Horizon::Clock(horizon(clock_ms, state.mark));
        let ruling = decide_claim(&self.resource, term, state.lease.as_ref(), state.mark, limit);
        match ruling.map_err(|error| state.refuse(error))? {
            Ruling::Holds if state.open => return Ok(None),
            Ruling::Holds if state.bumped => {
                // The mark stood there before, and nobody had claimed it: it is raised from itself.
                state.previous = state.mark;
                state.bumped = false;
            }
            // The claim before was not finished.
            Ruling::Holds => {}
            Ruling::Raise => {
                state.raise_to(term.token);
                state.lease = Some(term.lease.clone());
                state.bumped = false;
            }
        }
        Ok(Some(Raised))
    }

    /// Ends a claim whose mark is kept: waits for the writes of earlier terms, and opens the gate.
    pub(crate) async fn open(&self, term: &Term) -> Result<Claimed, FenceError> {
        let emptied = async {
            loop {
                // Registered before the look, so that no wake-up is missed between the two.
                let notified = self.emptied.notified();
                let mut notified = std::pin::pin!(notified);
                notified.as_mut().enable();
                if self.lock().earlier == 0 {
                    return;
                }
                notified.await;
            }
        };
        if self.lock().earlier > 0 {
            // The look below says what came of it.
            let _late = tokio::time::timeout(CLAIM_WAIT_MAX, emptied).await;
        }
        let mut state = self.lock();
        let owner = state.lease.clone();
        match decide_entry(&self.resource, term, owner.as_ref(), state.mark) {
            Err(refused) => Err(state.refuse(refused)),
            // The mark is raised, and is kept.
            Ok(()) if state.earlier > 0 => Err(FenceError::Store(StoreError::unknown(
                Fault::TimedOut,
                self.still_inside(term, state.earlier),
            ))),
            Ok(()) => {
                state.open = true;
                Ok(Claimed::Raised { from: state.previous })
            }
        }
    }

    /// Admits one write, if its term holds the mark.
    pub(crate) fn enter(&self, term: &Term) -> Result<(), FenceError> {
        let mut state = self.lock();
        if let Err(refused) = decide_entry(&self.resource, term, state.lease.as_ref(), state.mark) {
            return Err(state.refuse(refused));
        }
        if state.bumped {
            let unclaimed = FenceError::Unclaimed {
                resource: self.resource.clone(),
                token: term.token,
            };
            return Err(state.refuse(unclaimed));
        }
        if !state.open {
            let still_inside = self.still_inside(term, state.earlier);
            return Err(FenceError::Store(StoreError::not_applied(
                Fault::Busy,
                still_inside,
            )));
        }
        state.entered += 1;
        Ok(())
    }

    /// Counts what somebody in front of this gate has refused.
    pub(crate) fn count(&self, refusal: &FenceError) {
        self.lock().count(refusal);
    }

    /// One write of the term with this token has ended.
    pub(crate) fn leave(&self, token: FencingToken) {
        let mut state = self.lock();
        if state.mark == Some(token) {
            state.entered -= 1;
        } else {
            state.earlier -= 1;
            if state.earlier == 0 {
                self.emptied.notify_waiters();
            }
        }
    }

    pub(crate) fn bump(&self, bump: &Bump, clock_ms: u64) -> Result<(), FenceError> {
        let mut state = self.lock();
        let clock_ms = bump_clock_ms(state.mark.max(bump.above), clock_ms);
        let Some(token) = bumped(state.mark, bump.above, clock_ms) else {
            return Err(FenceError::Store(StoreError::not_applied(
                Fault::Invalid,
                format!("fence \"{}\": no token is left above the mark", self.resource),
            )));
        };
        state.raise_to(token);
        state.bumped = true;
        if let Some(lease) = &bump.lease {
            state.lease = Some(lease.clone());
        }
        Ok(())
    }

    fn still_inside(&self, term: &Term, earlier: u64) -> String {
        match earlier {
            0 => format!(
                "fence \"{}\": the claim of {term} is not finished; claim again",
                self.resource
            ),
            _ => format!(
                "fence \"{}\": {earlier} writes of earlier terms are still inside; claim again for {term} when they \
                 have ended",
                self.resource
            ),
        }
    }
}

/// That the mark was raised in memory, and is to be kept before it is relied on.
pub(crate) struct Raised;

impl State {
    fn raise_to(&mut self, token: FencingToken) {
        self.previous = self.mark;
        self.mark = Some(token);
        self.open = false;
        self.earlier += self.entered;
        self.entered = 0;
    }

    fn shown(&self, resource: &ResourceName, token: FencingToken) -> Mark {
        Mark {
            resource: resource.clone(),
            lease: self.lease.clone(),
            bumped: self.bumped,
            token,
            refused: self.refused,
            last_refused: self.last_refused,
        }
    }

    fn refuse(&mut self, error: FenceError) -> FenceError {
        self.count(&error);
        error
    }

    fn count(&mut self, error: &FenceError) {
        let Some((_, token)) = error.refused() else {
            return;
        };
        #[cfg(feature = "metrics")]
        metrics::counter!(tenure_core::REFUSALS_METRIC, "reason" => error.reason().unwrap_or_default())
            .increment(1);
        self.refused = self.refused.saturating_add(1);
        self.last_refused = Some(token);
    }
}
