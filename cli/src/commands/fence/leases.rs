//! What the store of the leases says about tokens.

use super::{decided, refusal};
use crate::commands::look::answer;
use crate::exit::Failure;
use tenure::core::{Horizon, TokenSource, is_counted};
use tenure::{Fence, FenceError, FencingToken, LeaseName, ResourceName, Term};

/// The store that somebody has named; the default one may hold other leases of these names.
pub(super) fn named(store: Option<&str>) -> Option<&str> {
    store.filter(|url| !url.is_empty())
}

/// Whether the store that somebody has named is a quorum, of which one member alone does not know what was granted.
pub(super) fn are_of_a_quorum(store: Option<&str>) -> bool {
    let is_one = |url: &str| url.starts_with("redis+quorum:") || url.starts_with("rediss+quorum:");
    named(store).is_some_and(is_one)
}

/// The highest token that the lease's record shows; `None` if it has no record there.
pub(super) async fn granted(lease: &LeaseName, store: Option<&str>) -> Result<Option<FencingToken>, Failure> {
    let store = crate::commands::open(store).await?;
    let lease = answer(store.get(lease)).await?;
    Ok(lease.map(|lease| lease.token))
}

/// Whether the store that somebody has named counts its terms, and follows no clock.
pub(super) async fn count(store: Option<&str>) -> Result<bool, Failure> {
    let Some(store) = named(store) else {
        return Ok(false);
    };
    let traits = crate::commands::open(Some(store)).await?.traits();
    Ok(traits.token_source == TokenSource::Revision)
}

/// Refuses a token that the lease's store has not granted, where the fence's clock bounds nothing: it knows only of
/// tokens that follow a clock, over a mark that does.
pub(super) async fn bound(
    fence: &dyn Fence,
    resource: &ResourceName,
    term: &Term,
    store: &str,
) -> Result<(), Failure> {
    let mark = decided(fence.mark(resource)).await?.map(|mark| mark.token);
    let is_bounded = !is_counted(term.token) && mark.is_some_and(|mark| !is_counted(mark));
    if is_bounded || mark >= Some(term.token) {
        return Ok(());
    }
    match granted(&term.lease, Some(store)).await {
        Ok(Some(highest)) if term.token > highest => Err(refusal(FenceError::Future {
            resource: resource.clone(),
            token: term.token,
            horizon: Horizon::Granted(highest),
        })),
        // A command that `tenure run` has started is not given the store's password: it need not get there.
        Ok(_) | Err(_) => Ok(()),
    }
}
