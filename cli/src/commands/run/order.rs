//! Campaigning in order: by priority, then by arrival.

use super::signs;
use crate::exit::{Code, Failure};
use tenure::contract::Ask;
use tenure::tooling::Standby;
use tenure::{
    Election, FencingToken, Leadership, LeaseName, LockError, LockManager, Priority, SharedStore, StoreError,
};
use tokio::time::sleep;

/// Campaigns when it is this process's turn, and for as long as it is.
pub(super) async fn campaign(queue: &LockManager, election: &Election) -> Result<Leadership, Failure> {
    let name = election.name();
    let out_of_turn = |error| out_of_turn(error, name);
    loop {
        let turn = queue.turn(name).await.map_err(out_of_turn)?;
        loop {
            let won = tokio::select! {
                biased;
                won = election.campaign() => Some(won),
                () = turn.over() => None,
            };
            if let Some(won) = won {
                let leadership = won.map_err(|error| Failure::from(error).of_lease(name.as_str()))?;
                // Another may have been called while this one took the lease: it gives it back unused.
                if !turn.is_overtaken().await.unwrap_or(false) {
                    // The next moves up, and waits for this one.
                    return Ok(leadership);
                }
                leadership.step_down().await;
            }
            if !turn.regain().await.map_err(out_of_turn)? {
                break;
            }
        }
    }
}

/// Whether somebody waits in order, before whom nobody else may take the lease; and lives, where the store
/// does not tell that.
pub(super) async fn others_wait(
    store: &SharedStore,
    name: &LeaseName,
    observed: Option<&SharedStore>,
) -> Result<bool, Failure> {
    let standbys = Standby::list(store, name).await;
    let standbys = standbys.map_err(|error| Failure::from(error).of_lease(name.as_str()))?;
    for standby in standbys.iter().filter(|standby| standby.priority.may_lead()) {
        let waits = match observed {
            Some(observed) => signs::holder_lives(observed, &standby.place.name).await?,
            None => true,
        };
        if waits {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether another is before this candidate, which may have no place in the queue yet, or it may not lead at
/// all.
pub(super) async fn is_behind(
    store: &SharedStore,
    election: &Election,
    priority: Priority,
) -> Result<bool, StoreError> {
    let (name, ours) = (election.name(), &election.candidate().id);
    let standbys = Standby::list(store, name).await?;
    let is_before = |first: &Standby| first.priority.may_lead() && first.candidate() != ours;
    Ok(!priority.may_lead() || standbys.first().is_some_and(is_before))
}

/// Asks this process's own term to end when a candidate of a higher priority waits.
pub(super) async fn yield_to_higher(
    store: &SharedStore,
    election: &Election,
    token: FencingToken,
    priority: Priority,
) {
    let name = election.name();
    loop {
        sleep(election.timing().renew_every()).await;
        let standbys = Standby::list(store, name).await.unwrap_or_default();
        if standbys.iter().any(|standby| standby.priority > priority) {
            let ask = Ask {
                name: name.clone(),
                token,
            };
            if store.ask(&ask).await.is_ok() {
                return;
            }
        }
    }
}

fn out_of_turn(error: LockError, name: &LeaseName) -> Failure {
    match error {
        LockError::Store(error) => Failure::from(error).of_lease(name.as_str()),
        error => Failure::new(Code::Configuration, error.to_string()),
    }
}
