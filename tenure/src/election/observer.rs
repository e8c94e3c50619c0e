use crate::clock::{now, sleep_until};
use crate::driver::{answer_within, watch_scope};
use crate::registry::SharedStore;
use crate::sync::{mpsc, select};
use futures_core::Stream;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tenure_core::{
    FencingToken, Lease, LeaseName, NameError, Occupancy, Scope, StoreError, Timing, WatchEvent,
};

/// What was seen of a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Observation {
    /// Somebody holds it.
    Held(Lease),
    /// Nobody holds it: vacant, expired, or never taken.
    Free(Option<Lease>),
    /// The store could not be read; what was seen before may be outdated.
    Unknown(StoreError),
}

/// A stream of who leads: one item for each change that was seen, the first at once. It never ends.
///
/// Tokens never decrease along the stream. An item is as old as the answer of the store: it says who led
/// then. Woken by the store's watch, and at the latest when the lease that was seen would expire.
pub struct Observer {
    next: Pin<Box<dyn Future<Output = (State, Observation)> + Send>>,
}

struct State {
    store: SharedStore,
    name: LeaseName,
    hints: Option<mpsc::Receiver<WatchEvent>>,
    timing: Timing,
    last: Option<Observation>,
    highest: Option<FencingToken>,
    pause: Duration,
}

impl Observer {
    /// Observes who leads, for whoever is no candidate: it writes nothing, and needs no thread of its own.
    /// Where the store tells nothing of changes, it looks every 30 s while nobody leads.
    ///
    /// # Errors
    /// [`NameError`]: the name is no name of a lease.
    pub fn of(name: impl AsRef<str>, store: SharedStore) -> Result<Self, NameError> {
        Ok(Self::new(store, LeaseName::new(name)?, &Timing::batch()))
    }

    pub(super) fn new(store: SharedStore, name: LeaseName, timing: &Timing) -> Self {
        let state = State {
            store,
            name,
            hints: None,
            timing: *timing,
            last: None,
            highest: None,
            pause: Duration::ZERO,
        };
        Self {
            next: Box::pin(state.next()),
        }
    }

    /// The next observation.
    pub async fn next(&mut self) -> Observation {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Observation> {
        self.next.as_mut().poll(context).map(|(state, observation)| {
            self.next = Box::pin(state.next());
            observation
        })
    }
}

impl Stream for Observer {
    type Item = Observation;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Observation>> {
        self.get_mut().poll(context).map(Some)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl State {
    async fn next(mut self) -> (Self, Observation) {
        loop {
            self.wait().await;
            let observation = self.look().await;
            let changed = self.last.as_ref().is_none_or(|last| differs(last, &observation));
            self.last = Some(observation.clone());
            if changed {
                return (self, observation);
            }
        }
    }

    async fn wait(&mut self) {
        if self.last.is_none() {
            return;
        }
        let hints = self.hints.get_or_insert_with(|| {
            watch_scope(
                &self.store,
                Scope::Name(self.name.clone()),
                self.timing.retry_every(),
            )
        });
        select! {
            biased;
            Some(_) = hints.recv() => {}
            // What expires while the machine sleeps is looked at as it wakes.
            () = sleep_until(now().after(self.pause)) => {}
        }
    }

    async fn look(&mut self) -> Observation {
        let subject = || format!("lease \"{}\"", self.name);
        let request = self.store.get(&self.name);
        let answer = answer_within(self.timing.request_timeout(), subject, request).await;
        self.pause = self.timing.ttl().duration();
        match answer {
            Ok(lease) => {
                let token = lease.as_ref().map(|lease| lease.token);
                if token.is_some_and(|token| Some(token) < self.highest) {
                    // An answer that was overtaken by a later one: it tells nothing of how things are now.
                    self.pause = self.timing.retry_every();
                    return self.last.clone().unwrap_or(Observation::Free(lease));
                }
                // A record that was removed tells nothing of tokens: those that come are still greater.
                self.highest = token.max(self.highest);
                match lease {
                    Some(lease) if lease.occupancy() == Occupancy::Held => {
                        self.pause = lease.remaining.max(self.timing.retry_every());
                        Observation::Held(lease)
                    }
                    lease => Observation::Free(lease),
                }
            }
            Err(error) => {
                self.pause = self.timing.retry_every();
                Observation::Unknown(error)
            }
        }
    }
}

/// Whether somebody who looks would call it a change: not a renewal, and not the same error again.
fn differs(last: &Observation, now: &Observation) -> bool {
    match (last, now) {
        (Observation::Held(last), Observation::Held(now)) => {
            last.token != now.token || last.asked_to_step_down != now.asked_to_step_down
        }
        (Observation::Free(last), Observation::Free(now)) => {
            last.as_ref().map(|lease| lease.token) != now.as_ref().map(|lease| lease.token)
        }
        (Observation::Unknown(last), Observation::Unknown(now)) => last.fault != now.fault,
        (Observation::Held(_) | Observation::Free(_) | Observation::Unknown(_), _) => true,
    }
}
