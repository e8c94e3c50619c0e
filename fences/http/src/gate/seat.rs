//! One resource at the gate: its mark, and how many of which term are inside.

use super::admission::Admission;
use super::clock::Reading;
use super::holder::{Holder, News};
use super::warnings::{Refused, Warnings};
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{FenceError, FencingToken, ResourceName, StoreError, Term};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;
use tracing::{debug, warn};

/// Most requests inside for one resource. Those of broken connections count until they end; beyond it a
/// request is told to come again.
const INSIDE_MAX: usize = 10_000;

/// Most requests that wait at the gate for one resource.
const WAITING_MAX: usize = 1_024;

/// A resource at the gate.
pub(crate) struct Seat {
    resource: ResourceName,
    state: Mutex<State>,
    /// The mark once more, for those who ask often and need no lock: 0 for none. Written under the lock.
    mark: AtomicU64,
    changed: Notify,
    claims: tokio::sync::Mutex<()>,
    /// Of all resources of the gate.
    warnings: Arc<Mutex<Warnings>>,
}

#[derive(Default)]
struct State {
    /// The highest mark that the fence has told of.
    mark: Option<FencingToken>,
    /// The term whose claim the fence has confirmed: nobody else gets in.
    holder: Option<Holder>,
    inside: BTreeMap<FencingToken, usize>,
    waiting: usize,
}

/// What a term may do now.
pub(crate) enum Step {
    Enters(Admission),
    Stale {
        mark: FencingToken,
    },
    Claims,
    /// The fence has confirmed it a while ago, and is to be asked again.
    Asks,
    /// Another request asks it.
    Awaits {
        until: Instant,
    },
    Waits {
        inside: usize,
    },
    Crowded,
}

impl Seat {
    pub(super) fn new(resource: ResourceName, warnings: Arc<Mutex<Warnings>>) -> Self {
        Self {
            resource,
            state: Mutex::default(),
            mark: AtomicU64::new(0),
            changed: Notify::new(),
            claims: tokio::sync::Mutex::default(),
            warnings,
        }
    }

    pub(crate) fn resource(&self) -> &ResourceName {
        &self.resource
    }

    pub(crate) fn step(self: &Arc<Self>, term: &Term) -> Step {
        let mut state = self.state();
        let token = term.token;
        match state.mark {
            Some(mark) if token < mark => return Step::Stale { mark },
            // Not by the number alone: another lease, or an operator, may have set this very mark.
            Some(_) if state.is_held_by(term) => {}
            Some(_) | None => return Step::Claims,
        }
        match state.holder.as_ref().map(|holder| holder.news(Reading::now())) {
            Some(News::Old) => return Step::Asks,
            Some(News::Coming { until }) => return Step::Awaits { until },
            Some(News::Fresh) | None => {}
        }
        // Whoever is inside with another token has an older one: the mark lets no other in.
        let older = state.inside.range(..token).map(|(_, count)| count).sum();
        if older > 0 {
            return Step::Waits { inside: older };
        }
        let count = state.inside.entry(token).or_default();
        if *count >= INSIDE_MAX {
            return Step::Crowded;
        }
        *count += 1;
        drop(state);
        Step::Enters(Admission::new(Arc::clone(self), term.clone()))
    }

    /// Whether only a claim can tell what this term may do.
    pub(crate) fn must_claim(&self, term: &Term) -> bool {
        let state = self.state();
        state.mark.is_none_or(|mark| mark <= term.token) && !state.is_held_by(term)
    }

    /// The fence has confirmed a claim that was made then.
    pub(crate) fn hold(&self, term: &Term, claimed_at: Reading) {
        self.state().holder = Some(Holder::new(term.clone(), claimed_at));
        self.raise(term.token);
    }

    /// `None`: another asks, or it holds the resource no more.
    pub(super) fn begin_to_ask(self: &Arc<Self>, term: &Term) -> Option<Asking> {
        let mut state = self.state();
        let holder = state.holder.as_mut().filter(|holder| holder.term == *term)?;
        let begun_at = Reading::now();
        holder.begin_to_ask(begun_at).then(|| Asking {
            seat: Arc::clone(self),
            term: term.clone(),
            begun_at,
        })
    }

    /// The fence says that the term does not hold the mark, or no more.
    fn unseat(&self, term: &Term, refusal: &FenceError) {
        let mut state = self.state();
        if state.is_held_by(term) {
            state.holder = None;
        }
        drop(state);
        if let FenceError::Stale { mark, .. } = refusal {
            self.raise(*mark);
        }
    }

    /// The end of an admission.
    pub(super) fn leave(&self, token: FencingToken) {
        let mut state = self.state();
        if let Some(count) = state.inside.get_mut(&token) {
            *count -= 1;
            if *count == 0 {
                state.inside.remove(&token);
                drop(state);
                self.changed.notify_waiters();
            }
        }
    }

    pub(crate) fn raise(&self, to: FencingToken) {
        let mut state = self.state();
        if state.mark.is_none_or(|mark| mark < to) {
            state.mark = Some(to);
            self.mark.store(to.number(), Ordering::SeqCst);
            drop(state);
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn mark(&self) -> Option<FencingToken> {
        FencingToken::new(self.mark.load(Ordering::SeqCst)).ok()
    }

    /// The next raise of the mark, or the end of a term's last admission.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(crate) async fn claim_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.claims.lock().await
    }

    /// A place in the line at the gate.
    pub(crate) fn wait_in_line(&self) -> Result<Waiting<'_>, Refusal> {
        let mut state = self.state();
        if state.waiting >= WAITING_MAX {
            drop(state);
            return Err(self.crowded());
        }
        state.waiting += 1;
        Ok(Waiting(self))
    }

    pub(crate) fn stale(&self, token: FencingToken, mark: FencingToken) -> Refusal {
        Refusal::Stale {
            resource: self.resource.clone(),
            token,
            mark,
        }
    }

    pub(crate) fn older_inside(&self, token: FencingToken, inside: usize, waited: Duration) -> Refusal {
        let refusal = Refusal::OlderInside {
            resource: self.resource.clone(),
            token,
            inside,
            waited,
        };
        self.warn(Refused::OlderInside, &refusal);
        refusal
    }

    pub(crate) fn crowded(&self) -> Refusal {
        let resource = self.resource.clone();
        let refusal = Refusal::Crowded { resource };
        self.warn(Refused::Crowded, &refusal);
        refusal
    }

    pub(crate) fn unavailable(&self, error: StoreError) -> Refusal {
        self.warn(
            Refused::Unavailable,
            &format_args!("the fence of \"{}\" cannot be asked: {error}", self.resource),
        );
        Refusal::Unavailable {
            resource: self.resource.clone(),
            error,
        }
    }

    /// Once a second at most for each kind: what keeps trying fills no log.
    fn warn(&self, refused: Refused, told: &dyn Display) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let warned = warnings.count(refused, Instant::now());
        drop(warnings);
        match warned {
            Some(refusals) => warn!(refusals, "{told}"),
            None => debug!("{told}"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held, so a poisoned state is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_held_by(&self, term: &Term) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.term == *term)
    }
}

/// The fence is being asked whether a term still holds the mark; however that ends, it may be asked again.
pub(super) struct Asking {
    seat: Arc<Seat>,
    pub(super) term: Term,
    begun_at: Reading,
}

impl Asking {
    pub(super) fn seat(&self) -> &Seat {
        &self.seat
    }

    pub(super) fn heard(self, answer: &Result<(), FenceError>) {
        match answer {
            Ok(()) => self.end(self.begun_at),
            // The term was confirmed, and a store that fails must not stop it.
            Err(FenceError::Store(error)) => {
                debug!(
                    "the fence of \"{}\" cannot be asked again: {error}",
                    self.seat.resource
                );
            }
            Err(refusal) => self.seat.unseat(&self.term, refusal),
        }
    }

    fn end(&self, asked_at: Reading) {
        let mut state = self.seat.state();
        let ours = |holder: &&mut Holder| holder.term == self.term && holder.is_asked_since(self.begun_at);
        if let Some(holder) = state.holder.as_mut().filter(ours) {
            holder.asked(asked_at);
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Without an answer; after one, this is another's.
        self.end(Reading::now());
        self.seat.changed.notify_waiters();
    }
}

/// A place in the line, given back on drop: also when the waiting is cancelled.
pub(crate) struct Waiting<'a>(&'a Seat);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}
