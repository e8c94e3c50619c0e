//! What the fences of a lease have refused, as their marks tell.

use crate::commands::fence::{FencePlace, Making, Opened, page};
use crate::endpoint::Board;
use crate::exit::Failure;
use crate::output::Voice;
use crate::place::Place;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tenure::{Fence, ListedMark};
use tokio::time::Instant;

/// The gauge that is set.
const NOTED: &str = "lease_fence_refusals_noted";

/// How often the marks are looked at. Only a leader looks: standbys ask for nothing that they do not need.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The same where each look is a login: of many leaders, more often would be much of what the server does.
const LOG_IN_EVERY: Duration = Duration::from_secs(60);

/// How long after a refusal the next look is made, at first and in the end: servers lock an account after
/// some refused logins on end, and it is the job's.
const REFUSED_PAUSE: Duration = Duration::from_secs(15 * 60);
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a look may take.
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);

/// A look reads the marks of all leases. It rests for so many times as long as that took: of many marks, each
/// leader's look would be all that the store is asked for.
const REST_LOOKS: u32 = 20;

/// How many marks a look reads at most.
const MARKS_MAX: usize = 100_000;

/// Tells as a metric how many writes the fences of this lease have refused, for as long as this process
/// lives.
///
/// The marks are those that the work finds by itself: where its environment says, or beside the leases. Where
/// there are none, or beside the leases no right to look at them, nothing is told. Nor is a sum of some of
/// them: where there are too many to be read, that is said.
pub(crate) async fn tell_noted_refusals(place: Place, board: Arc<Board>, voice: Voice) {
    let place = FencePlace::of_work(place);
    let mut opened = None;
    let mut is_untold = false;
    let mut refused_pause = REFUSED_PAUSE;
    loop {
        board.until_works().await;
        let began = Instant::now();
        let mut read = 0;
        let look = look(&place, &mut opened, &board, &mut read);
        let look = tokio::time::timeout(LOOK_TIME_MAX, look).await;
        if place.is_beside_data() {
            opened = None;
        }
        // A store that has told none does not answer.
        let unfinished = if read > 0 { Look::TooMany } else { Look::Failed };
        let mut pause = pause_after(&place, began.elapsed());
        match look.unwrap_or(unfinished) {
            Look::Noted(noted) => {
                #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53 refusals")]
                metrics::gauge!(NOTED, "lease" => board.lease().to_owned()).set(noted as f64);
                is_untold = false;
                refused_pause = REFUSED_PAUSE;
            }
            Look::TooMany => {
                if !is_untold {
                    say_too_many(board.lease(), voice);
                }
                is_untold = true;
            }
            Look::Refused(failure) => {
                if !is_untold {
                    say_refused(board.lease(), &failure, refused_pause, voice);
                }
                is_untold = true;
                pause = refused_pause;
                refused_pause = (refused_pause * 2).min(REFUSED_PAUSE_MAX);
            }
            Look::Failed => {}
        }
        tokio::time::sleep(pause).await;
    }
}

fn pause_after(place: &FencePlace, took: Duration) -> Duration {
    let every = match place.is_beside_data() && !place.is_file() {
        true => LOG_IN_EVERY,
        false => LOOK_EVERY,
    };
    every.max(took * REST_LOOKS)
}

fn say_too_many(lease: &str, voice: Voice) {
    let text = format!(
        "lease \"{lease}\": {NOTED} stays as it is: a look reads {MARKS_MAX} marks of fences at most, for {LOOK_TIME_MAX:?} at \
         most, and not all were read; remove those of resources that are gone, or keep the marks elsewhere"
    );
    voice.say("refusals_untold", &text, json!({"lease": lease}));
}

fn say_refused(lease: &str, failure: &Failure, pause: Duration, voice: Voice) {
    let text = format!(
        "lease \"{lease}\": {NOTED} stays as it is: the fence that TENURE_FENCE names lets nobody look: {failure}; it is \
         looked at again in {} min, and after longer and longer pauses",
        pause.as_secs() / 60
    );
    voice.say("refusals_untold", &text, json!({"lease": lease}));
}

/// What came of a look.
enum Look {
    /// The marks tell of so many refusals.
    Noted(u64),
    /// Whoever looks is refused, or what is there is no fence: a person must act.
    Refused(Failure),
    /// Not all marks can be read in time.
    TooMany,
    /// There are none, or they cannot be read now.
    Failed,
}

async fn look(place: &FencePlace, opened: &mut Option<Opened>, board: &Board, read: &mut usize) -> Look {
    let fence = match opened {
        Some(fence) => fence,
        None => {
            // Whoever claims meanwhile is kept out by none that only looks.
            match place.open(place.leases(None), Making::OnlyLooks).await {
                Ok(Some(fence)) => opened.insert(fence),
                Ok(None) => return Look::Failed,
                Err(failure) => return failed(place, failure),
            }
        }
    };
    let look = refused(&**fence, board.lease(), read).await;
    look.unwrap_or_else(|failure| {
        // It may have to be opened anew.
        *opened = None;
        failed(place, failure)
    })
}

fn failed(place: &FencePlace, failure: Failure) -> Look {
    // Beside the leases it is the leases' own store that refuses, which tells of that, or has no fence.
    match place.is_beside_data() && !failure.passes() {
        true => Look::Refused(failure),
        false => Look::Failed,
    }
}

/// By the marks of this lease; `read` tells how many were read, of all.
async fn refused(fence: &dyn Fence, lease: &str, read: &mut usize) -> Result<Look, Failure> {
    let (mut refused, mut after) = (0_u64, None);
    loop {
        let page = page(fence, after.as_ref()).await?;
        *read += page.marks.len();
        let understood = page.marks.iter().filter_map(ListedMark::understood);
        let of_lease = understood.filter(|mark| mark.lease.as_ref().is_some_and(|of| of.as_str() == lease));
        refused = of_lease.fold(refused, |sum, mark| mark.refused.saturating_add(sum));
        if page.next.is_none() {
            return Ok(Look::Noted(refused));
        }
        if *read >= MARKS_MAX {
            return Ok(Look::TooMany);
        }
        after = page.next;
    }
}
