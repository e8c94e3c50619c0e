//! Sends what an engine asks for, each on its own, none longer than the engine waits.

use super::About;
use crate::clock;
use crate::registry::SharedStore;
use crate::sync::{JoinSet, sleep, timeout};
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

/// Sends one request. The task yields the answer, or nothing when the engine has given the request up.
pub(super) fn send(requests: &mut JoinSet<Sent>, store: &SharedStore, request: Request) {
    let store = store.clone();
    requests.spawn(async move {
        let Request {
            id,
            give_up_at,
            operation,
        } = request;
        send_now(&store, Asker::Engine(id), give_up_at, &operation).await
    });
}

/// Looks at a lease after a pause, for `time_max` at most.
pub(super) fn look(
    requests: &mut JoinSet<Sent>,
    store: &SharedStore,
    name: LeaseName,
    pause: Duration,
    time_max: Duration,
) {
    let store = store.clone();
    requests.spawn(async move {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let give_up_at = clock::now().after(time_max);
        let operation = Operation::Look(name.clone());
        send_now(&store, Asker::Look(name), give_up_at, &operation).await
    });
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
