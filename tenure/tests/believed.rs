//! Until when a term is believed in.
use std::pin::pin;
use std::time::Duration;
use tenure::contract::Moment;
use tenure::{Leadership, Loss};

/// Much less than between two renewals.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until a term is lost. Until when it was believed in, as was last said of it, and why no longer: one
/// that is over tells no moment any more.
pub async fn until_lost(leadership: &Leadership) -> (Moment, Loss) {
    let mut until = leadership.until();
    let mut lost = pin!(leadership.lost());
    loop {
        tokio::select! {
            loss = &mut lost => return (until, loss),
            () = tokio::time::sleep(LOOK_EVERY) => until = until.max(leadership.until()),
        }
    }
}
