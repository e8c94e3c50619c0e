//! Giving the lease of a dead supervisor back.

use super::message::Begin;
use std::time::Duration;
use tenure::Registry;
use tenure::core::{Incarnation, Occupancy, Release};

/// How long it may take: after that the lease expires by itself, or is another's already.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Gives the term back that `begin` tells of, if the store still has it. Only when nothing of its work is left.
pub(super) async fn give_back(begin: &Begin) {
    // Nobody is left to be told; the lease expires by itself where this fails.
    let _ = tokio::time::timeout(TIME_MAX, tell(begin)).await;
}

async fn tell(begin: &Begin) -> Option<()> {
    let store = Registry::connect(&begin.store).await.ok()?;
    let lease = store.get(&begin.lease).await.ok()??;
    let incarnation = Incarnation::from_bits(begin.incarnation);
    let is_ours = lease.token == begin.token
        && lease.holder.incarnation == incarnation
        && lease.occupancy() == Occupancy::Held;
    if is_ours {
        let release = Release {
            name: lease.name,
            incarnation,
            token: lease.token,
            attempt: lease.attempt,
        };
        // Refused if the term has passed on meanwhile.
        let _answers = store.release(&[release]).await;
    }
    // Closing an SQLite file as the last one costs two flushes of the disk.
    std::mem::forget(store);
    Some(())
}
