//! What the fences beside the leases have refused, as their marks tell.

use crate::commands::fence::{FencePlace, Making, Opened, all};
use crate::endpoint::Board;
use crate::place::Place;
use std::sync::Arc;
use std::time::Duration;
use tenure::ListedMark;

/// The gauge that is set.
const NOTED: &str = "lease_fence_refusals_noted";

/// How often the marks are looked at. Only a leader looks: standbys ask for nothing that they do not need.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// How long a look may take.
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);

/// Tells as a metric how many writes the fences of this lease have refused, for as long as this process lives.
///
/// Where there are no marks beside the leases, or no right to look at them, nothing is told.
pub(crate) async fn tell_noted_refusals(place: Place, board: Arc<Board>) {
    let place = FencePlace::BesideLeases(place);
    let mut opened = None;
    loop {
        board.until_works().await;
        let look = tokio::time::timeout(LOOK_TIME_MAX, look(&place, &mut opened, &board));
        if let Ok(Some(noted)) = look.await {
            #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53 refusals")]
            metrics::gauge!(NOTED, "lease" => board.lease().to_owned()).set(noted as f64);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(place: &FencePlace, opened: &mut Option<Opened>, board: &Board) -> Option<u64> {
    if opened.is_none() {
        *opened = place.open(Making::Never).await.ok()?;
    }
    let Ok(marks) = all(opened.as_ref()?.fence()).await else {
        // It may have to be opened anew.
        *opened = None;
        return None;
    };
    let understood = marks.iter().filter_map(ListedMark::understood);
    let of_lease = understood.filter(|mark| {
        mark.lease
            .as_ref()
            .is_some_and(|lease| lease.as_str() == board.lease())
    });
    Some(of_lease.fold(0, |sum, mark| mark.refused.saturating_add(sum)))
}
