//! Sends what an engine asks for, each on its own, none longer than the engine waits.

use crate::clock;
use crate::registry::SharedStore;
use crate::sync::{JoinSet, timeout};
use tenure_core::{Input, Operation, Reply, Request};

/// Sends one request. The task yields the answer, or nothing when the engine has given the request up.
pub(super) fn send(requests: &mut JoinSet<Option<Input>>, store: &SharedStore, request: Request) {
    let store = store.clone();
    requests.spawn(async move {
        let Request {
            id,
            give_up_at,
            operation,
        } = request;
        // The driver's own deadline goes round every call: drivers of stores wait far too long by themselves.
        let left = give_up_at.since(clock::now());
        let reply = timeout(left, ask(&store, &operation)).await.ok()?;
        Some(Input::Answer { request: id, reply })
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
