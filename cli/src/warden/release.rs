//! Giving the lease of a dead supervisor back.

use super::message::Begin;
use std::time::Duration;
use tenure::core::{Incarnation, Occupancy, Release};
use tenure::{Registry, SharedStore, StoreError};

/// How long it is tried for: after that the lease expires by itself, or is another's already.
const TIME_MAX: Duration = Duration::from_secs(30);

/// How long one try may take: a connection that leads nowhere any more must not use up all the time.
const TRY_MAX: Duration = Duration::from_secs(5);

/// Pauses between tries, each twice as long as the one before it.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Gives the term back that `begin` tells of, if the store still has it. Only when nothing of its work is left.
///
/// What killed the supervisor often ails the store, too: a try that fails is made again.
pub(super) async fn give_back(begin: &Begin) {
    let tries = async {
        let mut pause = PAUSE_MIN;
        while !matches!(tokio::time::timeout(TRY_MAX, tell(begin)).await, Ok(Ok(()))) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    };
    // Nobody is left to be told; the lease expires by itself where this fails.
    let _ = tokio::time::timeout(TIME_MAX, tries).await;
}

/// The store has been told, or had nothing to be told.
///
/// # Errors
/// The store did not answer.
async fn tell(begin: &Begin) -> Result<(), StoreError> {
    let store = Registry::connect(&begin.store).await?;
    let told = tell_store(&store, begin).await;
    // Closing an SQLite file as the last one costs two flushes of the disk.
    std::mem::forget(store);
    told
}

async fn tell_store(store: &SharedStore, begin: &Begin) -> Result<(), StoreError> {
    let Some(lease) = store.get(&begin.lease).await? else {
        return Ok(());
    };
    let incarnation = Incarnation::from_bits(begin.incarnation);
    let is_ours = lease.token == begin.token
        && lease.holder.incarnation == incarnation
        && lease.occupancy() == Occupancy::Held;
    if !is_ours {
        return Ok(());
    }
    let release = Release {
        name: lease.name,
        incarnation,
        token: lease.token,
        attempt: lease.attempt,
    };
    for answer in store.release(&[release]).await {
        // Refused if the term has passed on meanwhile.
        let _released = answer?;
    }
    Ok(())
}
