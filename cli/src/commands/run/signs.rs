//! Whether a holder lives, for whoever makes one attempt at a store that does not tell it.

use crate::arguments::Patience;
use crate::exit::Failure;
use crate::output::in_json;
use std::time::Duration;
use tenure::contract::{Occupancy, Timekeeper};
use tenure::{LeaseName, SharedStore, clock_now};
use tokio::time::sleep;

/// How often it is looked for a sign of life.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whether somebody with so much patience has to look for signs of life itself: elsewhere the store says
/// whether a lease is over, and who waits sees it while waiting.
pub(super) fn are_needed(store: &SharedStore, patience: Patience) -> bool {
    patience == Patience::OneAttempt && store.traits().timekeeper == Timekeeper::Observer
}

/// Whether a holder of the lease lives: it has renewed the lease, or given it back, while this process looked
/// on. Looks on for as long as the lease may last; a lease whose holder has shown nothing by then is known to
/// be over.
///
/// Where each process times by itself how long a record has not changed, one that has just started knows
/// nothing of a holder, however long ago that died. One attempt after another would find the lease held, for
/// ever.
///
/// # Errors
/// Those of the store.
pub(super) async fn holder_lives(store: &SharedStore, name: &LeaseName) -> Result<bool, Failure> {
    let look = async || {
        let found = store.get(name).await;
        found.map_err(|error| Failure::from(error).of_lease(name.as_str()))
    };
    let held = look().await?.filter(|lease| lease.occupancy() == Occupancy::Held);
    let Some(held) = held else { return Ok(false) };
    let (holder, remaining_ms) = (&held.holder, in_json(held.remaining));
    tracing::info!(target: "tenure", lease = %name, %holder, remaining_ms, "Held; looking whether the holder lives");
    let began = clock_now();
    let mut remaining = held.remaining;
    loop {
        sleep(remaining.min(LOOK_EVERY)).await;
        let looked_for = clock_now().since(began);
        let Some(lease) = look().await? else {
            return Ok(true);
        };
        // What has not changed has run down for longer than this process has looked on. Ages are told by
        // clocks that may be set.
        let has_run_down = lease.remaining.saturating_add(looked_for) <= held.remaining;
        match lease.occupancy() {
            _ if lease.token != held.token => return Ok(true),
            Occupancy::Expired => return Ok(false),
            Occupancy::Held if has_run_down => remaining = lease.remaining,
            Occupancy::Held | Occupancy::Vacant => return Ok(true),
        }
    }
}
