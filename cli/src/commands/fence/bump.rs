//! `tenure fence bump`.

use super::{FencePlace, Making, decided, leases};
use crate::arguments::{FencePlaceArguments, Form};
use crate::exit::{Code, Failure};
use crate::output::{self, json_of_mark};
use tenure::core::is_counted;
use tenure::{Bump, FencingToken, LeaseName, ResourceName};

/// Raises a mark above what is known to have been granted.
pub(super) async fn bump(
    mut bump: Bump,
    place: &FencePlaceArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let place = FencePlace::find(place, store)?;
    let fence = place.open(Making::WhereMissing).await?;
    let mut fence = fence.expect("it was made where it was missing");
    let before = decided(fence.fence().mark(&bump.resource)).await?;
    let mark = before.as_ref().map(|mark| mark.token);
    // The lease may live in another store than the mark, with a clock that is ahead: what it has granted counts.
    if let Some(owner) = bump.lease.clone().or(before.and_then(|mark| mark.lease))
        && let Some(granted) = granted(&owner, &place, store).await?
    {
        if let Some(mark) = mark.filter(|mark| is_counted(*mark) && !is_counted(granted))
            && bump.above.is_none()
            && !place.is_beside_leases(store)
        {
            return Err(of_two_kinds(&bump.resource, mark, &owner, granted));
        }
        bump.above = bump.above.max(Some(granted));
    }
    // Beside the leases the fence knows more of their tokens than their numbers.
    if !place.is_beside_leases(store) {
        fence = fence.with_leases_elsewhere();
        let highest = mark.max(bump.above);
        match highest {
            None if leases::count(store).await? => return Err(unknown(&bump.resource, None)),
            Some(mark) if is_counted(mark) && bump.above.is_none() => {
                return Err(unknown(&bump.resource, Some(mark)));
            }
            Some(_) | None => {}
        }
    }
    let mark = decided(fence.fence().bump(&bump)).await;
    fence.close().await;
    let mark = mark?;
    let how = match is_counted(mark.token) {
        true => ", above what is known to be granted, as its tokens are counted",
        false => "",
    };
    output::print(&match form {
        Form::Text => output::line(&format!(
            "resource \"{}\": the mark is {}{how}; no term is admitted until a later one has claimed",
            mark.resource, mark.token
        )),
        Form::Json => format!("{}\n", json_of_mark(&mark)),
    })?;
    Ok(0)
}

/// What the lease has been granted, as far as anybody has said where it is: beside marks elsewhere the default store is a
/// guess, and may hold another lease of this name.
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
