//! Claiming a fence for a term in somebody's hands.

use crate::held::HeldTerm;
use crate::sync::{select, sleep};
use std::time::Duration;
use tenure_core::{Authority, Claimed, Fault, Fence, FenceError, ResourceName, Term};

/// How long after a claim that was kept waiting in vain the next one is made. The fence has waited for
/// seconds by itself.
const CLAIM_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Claims, and again for as long as the term may act where something of an earlier one keeps the mark: the
/// transaction of a leader that died in it is open until the server hears of that.
pub(crate) async fn claim(
    held: &HeldTerm,
    fence: &dyn Fence,
    resource: &ResourceName,
) -> Result<Claimed, FenceError> {
    let term = Term::new(held.name().clone(), held.token());
    loop {
        let refused = match fence.claim(resource, &term).await {
            Err(FenceError::Store(error)) if error.fault == Fault::Busy => error,
            decided => return decided,
        };
        tracing::info!(target: "tenure", lease = %term.lease, token = term.token.number(), %resource, error = %refused, "Claim waits");
        select! {
            biased;
            () = held.over() => {}
            () = sleep(CLAIM_AGAIN_AFTER) => {}
        }
        if held.term().authority() == Authority::None {
            return Err(FenceError::Store(refused));
        }
    }
}
