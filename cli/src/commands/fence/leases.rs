//! What the store of the leases says about tokens.

use super::{FencePlace, decided};
use crate::commands::look::answer;
use crate::exit::{Code, Failure};
use crate::output::{Voice, clean};
use crate::place::Place;
use serde_json::json;
use tenure::contract::TokenSource;
use tenure::{Fence, FencingToken, LeaseName, ResourceName, Term};

/// The store that somebody has named; the default one may hold other leases of these names.
pub(super) fn named(store: Option<&str>) -> Option<&str> {
    store.filter(|url| !url.is_empty())
}

/// The highest token that the lease's record shows; `None` if it has no record there.
pub(super) async fn granted(lease: &LeaseName, store: Option<&str>) -> Result<Option<FencingToken>, Failure> {
    let store = crate::commands::open(store).await?;
    let lease = answer(store.get(lease)).await?;
    Ok(lease.map(|lease| lease.token))
}

/// Says that nobody has named a store for this term, where its fence is on a server: what other hosts run
/// leads by another, and is ousted by the claim. So it goes where an operator's shell does not know what the
/// crontab says.
pub(super) fn tell_if_nobody_named_them(place: &FencePlace, store: Option<&str>, term: &Term, voice: Voice) {
    let Some(path) = store.and_then(Place::default_of) else {
        return;
    };
    if !place.is_on_a_server() {
        return;
    }
    let location = clean(&path.to_string_lossy());
    let text = format!(
        "lease \"{}\": taken in sqlite at {location}, of this user on this host alone, while the fence is on a server; where \
         other hosts take this lease, name the store that they share: tenure run --store URL",
        term.lease
    );
    let fields = json!({"lease": term.lease.as_str(), "store": {"kind": "sqlite", "location": location}});
    voice.say("leases_of_this_host", &text, fields);
}

/// Whether the store that somebody has named counts its terms, and follows no clock.
pub(super) async fn count(store: Option<&str>) -> Result<bool, Failure> {
    let Some(store) = named(store) else {
        return Ok(false);
    };
    let traits = crate::commands::open(Some(store)).await?.traits();
    Ok(traits.token_source == TokenSource::Revision)
}

/// Refuses a token that the lease's store has not granted: a fence elsewhere knows only what its clock says
/// of it.
pub(super) async fn bound(
    fence: &dyn Fence,
    resource: &ResourceName,
    term: &Term,
    store: &str,
) -> Result<(), Failure> {
    // Of one that is not above the mark, that says all.
    let mark = decided(fence.mark(resource)).await?.map(|mark| mark.token);
    if mark >= Some(term.token) {
        return Ok(());
    }
    match granted(&term.lease, Some(store)).await {
        Ok(Some(highest)) if term.token > highest => Err(Failure::new(
            Code::Configuration,
            format!(
                "refused: token {} is from the future for \"{resource}\": by its record in the store that is named, lease \"{}\" \
                 has granted at most {highest}; check where the token comes from",
                term.token, term.lease
            ),
        )),
        // A command that `tenure run` has started is not given the store's password: it need not get there.
        Ok(_) | Err(_) => Ok(()),
    }
}
