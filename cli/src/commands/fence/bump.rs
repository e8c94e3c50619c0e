//! `tenure fence bump`.

use super::{FencePlace, Making, close, decided, leases};
use crate::arguments::{FencePlaceArguments, Form};
use crate::exit::{Code, Failure};
use crate::output::{self, json_of_mark};
use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure::contract::{horizon, is_counted};
use tenure::{Bump, FencingToken, LeaseName, Leases, Mark, ResourceName};

/// Raises a mark above what is known to have been granted.
pub(super) async fn bump(
    mut bump: Bump,
    place: &FencePlaceArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let place = FencePlace::find(place, store)?;
    let leases = place.leases(store);
    let fence = place.open(leases, Making::WhereMissing).await?;
    let fence = fence.expect("it was made where it was missing");
    let before = decided(fence.mark(&bump.resource)).await?;
    let mark = before.as_ref().map(|mark| mark.token);
    let (asked, mut known) = (bump.above, mark);
    // The lease may live in another store than the mark, with a clock that is ahead: what it has granted
    // counts.
    if let Some(owner) = bump.lease.clone().or(before.and_then(|mark| mark.lease))
        && let Some(granted) = granted(&owner, &place, store).await?
    {
        if let Some(mark) = mark.filter(|mark| is_counted(*mark) && !is_counted(granted))
            && bump.above.is_none()
            && leases == Leases::Elsewhere
        {
            return Err(of_two_kinds(&bump.resource, mark, &owner, granted));
        }
        bump.above = bump.above.max(Some(granted));
        known = known.max(Some(granted));
    }
    if let Some(above) = asked {
        reachable(&bump.resource, above, known, store).await?;
    }
    // Beside the leases the fence knows more of their tokens than their numbers.
    if leases == Leases::Elsewhere {
        let highest = mark.max(bump.above);
        match highest {
            None if leases::count(store).await? => return Err(unknown(&bump.resource, None)),
            Some(mark) if is_counted(mark) && bump.above.is_none() => {
                return Err(unknown(&bump.resource, Some(mark)));
            }
            Some(_) | None => {}
        }
    }
    let raised = decided(fence.bump(&bump)).await;
    close(fence).await;
    let raised = raised?;
    output::print(&match form {
        Form::Text => output::line(&in_words(mark, &raised)),
        Form::Json => {
            let mut told = json_of_mark(&raised);
            told["before"] = json!(mark.map(FencingToken::number));
            format!("{told}\n")
        }
    })?;
    Ok(0)
}

/// What there is now, and what an operator would rather hear at once than wonder about later.
fn in_words(before: Option<FencingToken>, raised: &Mark) -> String {
    let how = match is_counted(raised.token) {
        true => ", above what is known to be granted, as its tokens are counted",
        false => "",
    };
    let until = match is_counted(raised.token)
        || raised.token.number() <= clock_ms().saturating_add(AHEAD_UNSAID_MS)
    {
        true => String::new(),
        false => format!(
            ", and none can before {}, as the mark is ahead of this host's clock",
            date(raised.token)
        ),
    };
    let made = match before {
        Some(_) => "",
        None => "; it had no mark before: check the name (tenure fence show tells those that have one)",
    };
    format!(
        "resource \"{}\": the mark is {}{how}; no term is admitted until a later one has claimed{until}{made}",
        raised.resource, raised.token
    )
}

/// As far as clocks that follow each other may be apart, and what a bump adds.
const AHEAD_UNSAID_MS: u64 = 5_000;

/// This host's.
fn clock_ms() -> u64 {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(clock.as_millis()).unwrap_or(u64::MAX)
}

/// What the lease has been granted, as far as anybody has said where it is: beside marks elsewhere the
/// default store is a guess, and may hold another lease of this name.
async fn granted(
    owner: &LeaseName,
    place: &FencePlace,
    store: Option<&str>,
) -> Result<Option<FencingToken>, Failure> {
    match (place, leases::named(store)) {
        (FencePlace::Given(_), None) => Ok(None),
        (FencePlace::Given(_) | FencePlace::BesideLeases(_), store) => leases::granted(owner, store).await,
    }
}

/// How far above the highest token that is known a counted mark may be set: a day's worth of a busy etcd's
/// revisions.
const COUNTED_AHEAD_MAX: u64 = 1_000_000_000;

/// Refuses what no term may ever be above: a mark never goes down again.
async fn reachable(
    resource: &ResourceName,
    above: FencingToken,
    known: Option<FencingToken>,
    store: Option<&str>,
) -> Result<(), Failure> {
    let refuse = |why: String| {
        Err(Failure::new(
            Code::Configuration,
            format!("resource \"{resource}\": --above {above} {why}; nothing was changed"),
        ))
    };
    if !is_counted(above) && leases::count(store).await? {
        return refuse(
            "is a time, and the store of its leases counts its terms: none would be admitted again; check the digits".to_owned(),
        );
    }
    if let Some(known) = known.filter(|known| is_counted(above) && is_counted(*known))
        && above.number() > known.number().saturating_add(COUNTED_AHEAD_MAX)
    {
        return refuse(format!(
            "is more than {COUNTED_AHEAD_MAX} above {known}, the highest that is known, and no term would be admitted before so many \
             more were counted: check the digits; if a lease has been granted it all the same, name that (--store URL --lease NAME)"
        ));
    }
    // A fence on a server goes by a clock of its own; a day is more than that is apart from this one.
    if above <= horizon(clock_ms(), known) {
        return Ok(());
    }
    refuse(format!(
        "stands for {}, and no term would be admitted until then: check the digits, and this host's clock; if a lease has been \
         granted it all the same, name that (--store URL --lease NAME)",
        date(above)
    ))
}

/// The time that a token of a clock stands for.
fn date(token: FencingToken) -> String {
    // The last token is the last time that has such a form.
    let time = UNIX_EPOCH + Duration::from_millis(token.number());
    humantime::format_rfc3339_seconds(time).to_string()
}

/// One that was granted and has not claimed is above the mark: a bump past the mark alone would let it in.
fn unknown(resource: &ResourceName, mark: Option<FencingToken>) -> Failure {
    let what = match mark {
        Some(mark) => format!("its mark {mark} is no time of a clock"),
        None => "nobody has claimed it".to_owned(),
    };
    Failure::new(
        Code::Configuration,
        format!(
            "resource \"{resource}\": the store of its leases counts its terms ({what}), and how far is not known; name the \
             store and the lease (--store URL --lease NAME), or the highest token that was granted (--above TOKEN)"
        ),
    )
}

/// A mark of a clock's size refuses every later term of a store that counts, for ever.
fn of_two_kinds(
    resource: &ResourceName,
    mark: FencingToken,
    lease: &LeaseName,
    granted: FencingToken,
) -> Failure {
    Failure::new(
        Code::Configuration,
        format!(
            "resource \"{resource}\": its mark {mark} is counted, and token {granted} of lease \"{lease}\" is of a clock: another \
             store has granted what has claimed; nothing was changed: name that store (--store URL), or the highest token that \
             was granted (--above TOKEN)"
        ),
    )
}
