//! Sends what an engine asks for, each on its own, none longer than the engine waits.

use super::About;
use super::caught::caught;
use crate::clock;
use crate::registry::SharedStore;
use crate::sync::{JoinSet, timeout};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_core::{LeaseName, Moment, Operation, Reply, Request, RequestId};

/// What became of a request.
pub(super) struct Sent {
    pub(super) about: About,
    pub(super) took: Duration,
    pub(super) asker: Asker,
    /// `None` if it was given up.
    pub(super) reply: Option<Reply>,
}

/// Who waits for an answer.
pub(super) enum Asker {
    Engine(RequestId),
    /// The driver, before a campaign for this lease.
    Look(LeaseName),
}

/// The requests under way.
pub(super) struct Requests {
    store: SharedStore,
    tasks: JoinSet<Sent>,
    /// What was answered at once, `None` where that was a panic.
    answered: VecDeque<Option<Sent>>,
}

impl Requests {
    pub(super) fn new(store: SharedStore) -> Self {
        Self {
            store,
            tasks: JoinSet::new(),
            answered: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.tasks.is_empty()
    }

    /// The next that is answered, or was given up; `None` for one that panicked, which is no answer, either.
    pub(super) async fn next(&mut self) -> Option<Sent> {
        if let Some(sent) = self.answered.pop_front() {
            return sent;
        }
        match self.tasks.join_next().await {
            Some(Ok(sent)) => Some(sent),
            Some(Err(_)) | None => None,
        }
    }

    /// Sends one, whose answer is nothing when the engine has given it up.
    pub(super) fn send(&mut self, request: Request) {
        let store = self.store.clone();
        let is_of_one = match &request.operation {
            Operation::Acquire(_) | Operation::Look(_) => true,
            Operation::Release(releases) => releases.len() == 1,
            // Whoever has come for one lease does not wait for a beat of thousands.
            Operation::Renew(_) => false,
        };
        let asking = async move {
            let Request {
                id,
                give_up_at,
                operation,
            } = request;
            send_now(&store, Asker::Engine(id), give_up_at, &operation).await
        };
        if is_of_one {
            self.begin(Box::pin(asking));
        } else {
            self.tasks.spawn(asking);
        }
    }

    /// Looks at a lease, for `time_max` at most. A panic of the store's is no answer.
    pub(super) fn look(&mut self, name: LeaseName, time_max: Duration) {
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let (give_up_at, operation) = (clock::now().after(time_max), Operation::Look(name.clone()));
            let asker = Asker::Look(name.clone());
            let asking = send_now(&store, asker, give_up_at, &operation);
            // The engine asks again by its own clock; nobody but the driver does for this.
            let no_answer = || Sent {
                about: About::of(&operation),
                took: Duration::ZERO,
                asker: Asker::Look(name.clone()),
                reply: None,
            };
            caught(asking).await.unwrap_or_else(no_answer)
        });
    }

    /// A store that answers within the call needs no task. From the second step on it has a waker of its own.
    fn begin(&mut self, mut asking: Pin<Box<dyn Future<Output = Sent> + Send>>) {
        let mut context = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| asking.as_mut().poll(&mut context))) {
            Ok(Poll::Pending) => {
                self.tasks.spawn(asking);
            }
            Ok(Poll::Ready(sent)) => self.answered.push_back(Some(sent)),
            Err(_panic) => self.answered.push_back(None),
        }
    }
}

async fn send_now(store: &SharedStore, asker: Asker, give_up_at: Moment, operation: &Operation) -> Sent {
    let about = About::of(operation);
    let sent_at = clock::now();
    // The driver's own deadline goes round every call: drivers of stores wait far too long by themselves.
    let left = give_up_at.since(sent_at);
    let reply = timeout(left, ask(store, operation)).await.ok();
    Sent {
        about,
        took: clock::now().since(sent_at),
        asker,
        reply,
    }
}

async fn ask(store: &SharedStore, operation: &Operation) -> Reply {
    match operation {
        Operation::Acquire(acquire) => Reply::Acquired(store.acquire(acquire).await),
        Operation::Renew(renewals) => Reply::Renewed(store.renew(renewals).await),
        Operation::Release(releases) => Reply::Released(store.release(releases).await),
        Operation::Look(name) => Reply::Looked(store.get(name).await),
    }
}
