//! One resource at the gate: its mark, and how many of which term are inside.

use super::admission::Admission;
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{FencingToken, ResourceName, StoreError, Term};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
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
}

#[derive(Default)]
struct State {
    /// The highest mark that the fence has told of.
    mark: Option<FencingToken>,
    /// The term whose claim the fence has confirmed: nobody else gets in.
    holder: Option<Term>,
    inside: BTreeMap<FencingToken, usize>,
    waiting: usize,
    /// The stale token that was refused last.
    refused: Option<FencingToken>,
}

/// What a term may do now.
pub(crate) enum Step {
    Enters(Admission),
    Stale { mark: FencingToken },
    Claims,
    Waits { inside: usize },
    Crowded,
}

impl Seat {
    pub(super) fn new(resource: ResourceName) -> Self {
        Self {
            resource,
            state: Mutex::default(),
            mark: AtomicU64::new(0),
            changed: Notify::new(),
            claims: tokio::sync::Mutex::default(),
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
            Some(_) if state.holder.as_ref() == Some(term) => {}
            Some(_) | None => return Step::Claims,
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
        state.mark.is_none_or(|mark| mark <= term.token) && state.holder.as_ref() != Some(term)
    }

    /// The fence has confirmed a claim.
    pub(crate) fn hold(&self, term: &Term) {
        self.state().holder = Some(term.clone());
        self.raise(term.token);
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
        let refusal = Refusal::Stale {
            resource: self.resource.clone(),
            token,
            mark,
        };
        // Once for each zombie: one that keeps trying fills no log.
        if self.state().refused.replace(token) == Some(token) {
            debug!("{refusal}");
        } else {
            warn!("{refusal}");
        }
        refusal
    }

    pub(crate) fn older_inside(&self, token: FencingToken, inside: usize, waited: Duration) -> Refusal {
        let refusal = Refusal::OlderInside {
            resource: self.resource.clone(),
            token,
            inside,
            waited,
        };
        warn!("{refusal}");
        refusal
    }

    pub(crate) fn crowded(&self) -> Refusal {
        let resource = self.resource.clone();
        let refusal = Refusal::Crowded { resource };
        warn!("{refusal}");
        refusal
    }

    pub(crate) fn unavailable(&self, error: StoreError) -> Refusal {
        warn!("the fence of \"{}\" cannot be asked: {error}", self.resource);
        Refusal::Unavailable {
            resource: self.resource.clone(),
            error,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held, so a poisoned state is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the line, given back on drop: also when the waiting is cancelled.
pub(crate) struct Waiting<'a>(&'a Seat);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}
