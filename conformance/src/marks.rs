//! What every fence shows of its marks: all of them, page by page, whatever has become of one.

use crate::Corruption;
use crate::asking::{give_back, request, take};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tenure_core::{
    Bump, Claimed, Cursor, Fault, Fence, FenceError, FencingToken, Horizon, LeaseName, LeaseStore,
    ListedMark, MARKS_MAX, Occupancy, REMOVE_MARK, ResourceName, Term,
};
use tokio::task::JoinSet;

/// How often it is looked whether a lease is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Marks that are claimed at once.
const CLAIMS_MAX: usize = 32;

/// Fills a page and begins another, has `damage` make a mark that is none of the one of this resource, and
/// looks: it hides no other, on its own page or beyond, and admits nobody.
///
/// # Panics
/// If a mark is missing, out of its order, or shown for another; if the damaged one is believed.
pub async fn a_damaged_mark_hides_no_other(fence: Arc<dyn Fence>, damage: impl AsyncFnOnce(&str)) {
    let names: Vec<String> = (0..MARKS_MAX + 2).map(|number| format!("r{number:05}")).collect();
    for some in names.chunks(CLAIMS_MAX) {
        let mut claims = JoinSet::new();
        for name in some {
            let (fence, resource) = (Arc::clone(&fence), resource(name));
            claims.spawn(async move { fence.claim(&resource, &term(7)).await });
        }
        for claimed in claims.join_all().await {
            claimed.expect("a claim");
        }
    }
    let damaged = names[MARKS_MAX / 2].as_str();
    damage(damaged).await;

    let mut shown = Vec::new();
    let mut after = None;
    let mut pages = 0;
    while pages == 0 || after.is_some() {
        let page = fence.marks(after.as_ref()).await.expect("a page");
        assert!(page.marks.len() <= MARKS_MAX, "{} marks", page.marks.len());
        shown.extend(page.marks.iter().map(|listed| read(listed, damaged)));
        after = page.next;
        pages += 1;
    }
    assert_eq!(shown, names);
    assert!(pages > 1, "all were on one page");

    let behind = names[MARKS_MAX / 2 - 1].as_str();
    let next = fence.marks(Some(&Cursor::behind(behind))).await.expect("a page");
    let first = next.marks.first().map(|listed| read(listed, damaged));
    assert_eq!(first.as_deref(), Some(damaged));

    let damaged = resource(damaged);
    let looked = fence.mark(&damaged).await.map(drop);
    for refused in [looked, fence.check(&damaged, &term(7)).await] {
        assert!(
            matches!(&refused, Err(FenceError::Store(error)) if error.fault == Fault::Unreadable),
            "{refused:?}"
        );
    }
}

/// Has `plant` write a number into the mark of a resource that no token has, as a slip of an operator's or of
/// another program may be: it is told as a damaged mark by every call, with the way out, and that way leads
/// out. `remove` removes the mark.
///
/// # Panics
/// If it is believed, disturbs another, or the way does not lead out.
pub async fn a_mark_beyond_the_last_token_is_told_with_the_way_out(
    fence: &dyn Fence,
    plant: impl AsyncFnOnce(&str, i64),
    remove: impl AsyncFnOnce(&str),
) {
    let [ledger, other] = ["ledger", "other"].map(resource);
    for resource in [&ledger, &other] {
        fence.claim(resource, &term(7)).await.expect("a claim");
    }
    plant(ledger.as_str(), Corruption::BEYOND_THE_LAST).await;
    let bump = Bump {
        resource: ledger.clone(),
        above: None,
        lease: None,
    };
    for (call, answer) in [
        ("mark", fence.mark(&ledger).await.map(drop)),
        ("check", fence.check(&ledger, &term(7)).await),
        ("claim", fence.claim(&ledger, &term(7)).await.map(drop)),
        ("claim anew", fence.claim(&ledger, &term(8)).await.map(drop)),
        ("bump", fence.bump(&bump).await.map(drop)),
    ] {
        let Err(FenceError::Store(error)) = answer else {
            panic!("{call}: {answer:?}")
        };
        assert_eq!(error.fault, Fault::Unreadable, "{call}: {error}");
        let told = ["ledger", "mend", REMOVE_MARK];
        assert!(
            told.iter().all(|part| error.message.contains(part)) && !error.message.contains('\n'),
            "{call}: {error}"
        );
    }
    fence
        .check(&other, &term(7))
        .await
        .expect("the other is as it was");

    remove(ledger.as_str()).await;
    let bumped = fence.bump(&bump).await.expect("a bump").token;
    let claimed = fence.claim(&ledger, &term(8)).await;
    assert!(matches!(claimed, Err(FenceError::Stale { .. })), "{claimed:?}");
    let claimed = fence.claim(&ledger, &term(bumped.number() + 1)).await;
    assert_eq!(claimed, Ok(Claimed::Raised { from: Some(bumped) }));
}

/// Claims resources whose names a collation, or a key with slashes, might put in another order than their
/// bytes.
///
/// # Panics
/// If one is missing, or shown in another place.
pub async fn marks_are_in_the_order_of_their_resources(fence: &dyn Fence) {
    let mut names = ["b", "a", "ä", "B", "a/b", "a b", "*"];
    for name in names {
        fence.claim(&resource(name), &term(7)).await.expect("a claim");
    }
    names.sort_unstable();
    let (mut after, mut left) = (None, &names[..]);
    loop {
        let page = fence.marks(after.as_ref()).await.expect("a page");
        let shown: Vec<String> = page.marks.iter().map(|listed| read(listed, "")).collect();
        assert_eq!(shown, left);
        assert_eq!(page.next, None);
        let Some((first, rest)) = left.split_first() else {
            break;
        };
        (after, left) = (Some(Cursor::behind(first)), rest);
    }
    // Behind a name that none has.
    let page = fence.marks(Some(&Cursor::behind("aa"))).await.expect("a page");
    let shown: Vec<String> = page.marks.iter().map(|listed| read(listed, "")).collect();
    assert_eq!(shown, ["b", "ä"]);
}

/// Claims with tokens that are ahead of the fence's clock, of a lease that is kept elsewhere: by up to a day
/// that is let pass, and a mark further ahead would keep every term out until then.
///
/// # Panics
/// If one that is further ahead is taken, or one within a day refused.
pub async fn a_token_is_a_day_ahead_of_the_clock_at_most(fence: &dyn Fence) {
    let now = u64::try_from(UNIX_EPOCH.elapsed().expect("a clock").as_millis()).expect("a time");
    let ahead = |hours: u64| term(now + hours * 60 * 60 * 1000);
    let [ledger, fresh] = ["ledger", "fresh"].map(resource);
    for (resource, hours) in [(&fresh, 48), (&ledger, 12), (&ledger, 48)] {
        let claimed = fence.claim(resource, &ahead(hours)).await;
        match hours {
            12 => assert!(matches!(claimed, Ok(Claimed::Raised { .. })), "{claimed:?}"),
            _ => assert!(matches!(claimed, Err(FenceError::Future { .. })), "{claimed:?}"),
        }
    }
    let page = fence.marks(None).await.expect("a page");
    let understood = page.marks.iter().filter_map(ListedMark::understood);
    let marks: Vec<_> = understood.map(|mark| (&mark.resource, mark.token)).collect();
    assert_eq!(marks, [(&ledger, ahead(12).token)]);
}

/// Claims and bumps by a fence that goes by the leases beside it, and by one of the same place whose leases
/// are elsewhere; `left` is the last term of a lease by its record beside them, and its token is of a clock.
///
/// # Panics
/// If the former lets a term pass that is over or from the future by that record, or the latter goes by it.
pub async fn what_leases_have_left_behind_says_nothing(here: &dyn Fence, elsewhere: &dyn Fence, left: &Term) {
    let numbered = |number| Term::new(left.lease.clone(), FencingToken::new(number).expect("a token"));
    let (future, over) = (numbered(left.token.number() + 1), numbered(5));
    let [by_clock, counted] = ["by-clock", "counted"].map(resource);
    let claimed = here.claim(&by_clock, &future).await;
    assert!(
        matches!(&claimed, Err(FenceError::Future { horizon, .. }) if *horizon == Horizon::Granted(left.token)),
        "{claimed:?}"
    );
    let claimed = here.claim(&counted, &over).await;
    assert!(
        matches!(&claimed, Err(FenceError::Stale { mark, .. }) if *mark == left.token),
        "{claimed:?}"
    );
    assert_eq!(here.marks(None).await.expect("a page").marks, []);
    // The leases may have gone to a store by a clock, or to one that counts.
    for (resource, term) in [(&by_clock, &future), (&counted, &over)] {
        let claimed = elsewhere.claim(resource, term).await;
        assert_eq!(claimed, Ok(Claimed::Raised { from: None }));
    }
    let bump = Bump {
        resource: counted,
        above: None,
        lease: None,
    };
    let bumped = elsewhere.bump(&bump).await.expect("a bump");
    assert_eq!(bumped.token, numbered(6).token);
    // Said of the one fence, and not of the session that it asks by.
    let bumped = here.bump(&bump).await.expect("a bump");
    assert!(bumped.token > left.token, "{bumped:?}");
}

/// Claims where no mark is, by terms of leases that nobody holds any more: of one the last term was given
/// back, as most are, and of the other it has expired. `fence` goes by the leases of `store`, and has no
/// marks.
///
/// # Panics
/// If the last token that was granted is the highest that may claim, and the lowest, only while it is held.
pub async fn leases_that_nobody_holds_bound_the_first_claim(store: &dyn LeaseStore, fence: &dyn Fence) {
    for ending in [Occupancy::Vacant, Occupancy::Expired] {
        let lease = match ending {
            Occupancy::Vacant => "given-back",
            _ => "expired",
        };
        let asked = ["former", "last"].map(|label| request(lease, label, store.traits().ttl_min));
        let [former, last] = &asked;
        let over = take(store, former).await.token;
        give_back(store, former, over).await;
        let granted = take(store, last).await.token;
        if ending == Occupancy::Vacant {
            give_back(store, last, granted).await;
        }
        while occupancy(store, &last.name).await != ending {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let place = resource(lease);
        let claim = async |token| fence.claim(&place, &Term::new(last.name.clone(), token)).await;
        let claimed = claim(over).await;
        assert!(
            matches!(&claimed, Err(FenceError::Stale { mark, .. }) if *mark == granted),
            "{lease}: {claimed:?}"
        );
        let next = FencingToken::new(granted.number() + 1).expect("a token");
        let claimed = claim(next).await;
        assert!(
            matches!(&claimed, Err(FenceError::Future { horizon, .. }) if *horizon == Horizon::Granted(granted)),
            "{lease}: {claimed:?}"
        );
        assert_eq!(fence.mark(&place).await, Ok(None), "{lease}");
        // No later term was granted: nobody is disturbed by it.
        assert_eq!(
            claim(granted).await,
            Ok(Claimed::Raised { from: None }),
            "{lease}"
        );
    }
}

async fn occupancy(store: &dyn LeaseStore, lease: &LeaseName) -> Occupancy {
    let lease = store.get(lease).await.expect("the store answers");
    lease.expect("the record of a lease stays").occupancy()
}

/// Whether a fence has refused to guard what is no table of the user's own, in words with these parts.
///
/// # Panics
/// If it guards it, or says something else.
pub fn is_not_guarded<Guarded>(guarded: Result<Guarded, FenceError>, parts: [&str; 2]) {
    let Err(FenceError::Store(error)) = guarded else {
        panic!("{parts:?} is guarded")
    };
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(
        parts.iter().all(|part| error.message.contains(part)),
        "{parts:?}: {error}"
    );
}

/// What stands there, which is understood unless it is the damaged one.
fn read(listed: &ListedMark, damaged: &str) -> String {
    match listed {
        ListedMark::Mark(mark) => {
            assert_eq!(
                (mark.lease.as_ref(), mark.token),
                (Some(&term(7).lease), term(7).token)
            );
            assert_ne!(mark.resource.as_str(), damaged, "it was believed");
            mark.resource.to_string()
        }
        ListedMark::Unreadable { key, error } => {
            assert_eq!(error.fault, Fault::Unreadable, "{error}");
            assert!(error.message.contains(damaged), "{error}");
            assert_eq!(key, damaged, "{error}");
            key.clone()
        }
    }
}

fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name")
}

fn term(number: u64) -> Term {
    let token = FencingToken::new(number).expect("a token");
    Term::new(LeaseName::new("nightly").expect("a name"), token)
}
