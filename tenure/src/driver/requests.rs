//! Sends what an engine asks for, each on its own, none longer than the engine waits.

use super::About;
use crate::clock;
use crate::registry::SharedStore;
use crate::sync::{JoinSet, timeout};
use std::time::Duration;
use tenure_core::{Operation, Reply, Request, RequestId};

/// What became of a request.
pub(super) struct Sent {
    pub(super) about: About,
    pub(super) took: Duration,
    /// `None` if it was given up.
    pub(super) answer: Option<(RequestId, Reply)>,
}

/// Sends one request. The task yields the answer, or nothing when the engine has given the request up.
pub(super) fn send(requests: &mut JoinSet<Sent>, store: &SharedStore, request: Request) {
    let store = store.clone();
    requests.spawn(async move {
        let about = About::of(&request.operation);
        let sent_at = clock::now();
        let Request {
            id,
            give_up_at,
            operation,
        } = request;
        // The driver's own deadline goes round every call: drivers of stores wait far too long by themselves.
        let left = give_up_at.since(clock::now());
        let reply = timeout(left, ask(&store, &operation)).await.ok();
        let took = clock::now().since(sent_at);
        Sent {
            about,
            took,
            answer: reply.map(|reply| (id, reply)),
        }
    });
}

async fn ask(store: &SharedStore, operation: &Operation) -> Reply {
    match operation {
        Operation::Acquire(acquire) => Reply::Acquired(store.acquire(acquire).await),
        Operation::Renew(renewals) => Reply::Renewed(store.renew(renewals).await),
        Operation::Release(releases) => Reply::Released(store.release(releases).await),
        Operation::Look(name) => Reply::Looked(store.get(name).await),
    }
}
