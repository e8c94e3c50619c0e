//! Cleaning up: only what nobody uses goes, and tokens rise over it. A store that cannot do it declares why,
//! which is checked.

use crate::{Contender, Corruption, Fixture};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Fault, FencingToken, LeaseName, LeasePurge, Listed, PURGE_TTLS_MIN, Purge, Purged, Purging, Ttl,
};
use tokio::time::{Instant, sleep};

/// Longer than any case.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a clock's reading may be late by, on a loaded machine.
const MARGIN: Duration = Duration::from_millis(300);

/// How often the machine may stand still for as long as a record must have been unused.
const STANDSTILLS_MAX: u32 = 5;

/// The records of the case, whatever they are unused for: ten of their own ttls count all the same.
fn everything(fixture: &Fixture, purging: Purging) -> Purge {
    Purge {
        prefix: fixture.unique().to_owned(),
        after: None,
        limit: 1_000,
        unused_for: Duration::ZERO,
        purging,
    }
}

async fn purge(cleaner: &Arc<dyn LeasePurge>, request: &Purge) -> Purged {
    let answer = cleaner.purge(request).await;
    answer.unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

/// The shortest ttl: ten of them pass soon.
fn brief(fixture: &Fixture, name: &LeaseName) -> Contender {
    let ttl = fixture.traits().ttl_min;
    fixture.contender("ada", name).with_ttl(ttl)
}

async fn released(fixture: &Fixture, contender: &Contender) -> FencingToken {
    let token = fixture.first().take(contender).await.token;
    fixture.first().vacate(&contender.release(token)).await;
    token
}

/// Waits until what was taken with the shortest ttl is unused for long enough, also if it has only expired.
/// Where that counts from a first visit it is made: nothing goes by it.
async fn until_unused(fixture: &Fixture) {
    let ttl: Ttl = fixture.traits().ttl_min;
    if let Some(cleaner) = fixture.cleaner().filter(|cleaner| cleaner.notes_first()) {
        for listed in fixture.first().list(fixture.unique(), 1_000).await {
            if let Listed::Lease(lease) = listed
                && lease.ttl == ttl
            {
                fixture.first().wait_until_free(&lease.name).await;
            }
        }
        let purged = purge(&cleaner, &everything(fixture, Purging::Removes)).await;
        assert_eq!(
            (purged.unused, purged.removed),
            (Vec::new(), 0),
            "at the first visit"
        );
    }
    sleep(ttl.duration() * (PURGE_TTLS_MIN + 1) + MARGIN).await;
}

/// What was released or has expired long ago is removed, and only then; and the next token of its name is
/// greater.
pub async fn unused_records_are_removed_and_their_tokens_rise(fixture: &Fixture) {
    let Some(cleaner) = fixture.cleaner() else { return };
    let (ada, dead) = (brief(fixture, &fixture.name()), brief(fixture, &fixture.name()));
    let old = released(fixture, &ada).await;
    fixture.second().take(&dead).await;
    until_unused(fixture).await;
    let for_a_day = Purge {
        unused_for: DAY,
        ..everything(fixture, Purging::Removes)
    };
    let purged = purge(&cleaner, &for_a_day).await;
    assert_eq!(
        (purged.unused, purged.removed),
        (Vec::new(), 0),
        "unused for seconds, not a day"
    );
    let purged = purge(&cleaner, &everything(fixture, Purging::Removes)).await;
    let both = vec![ada.name.clone(), dead.name.clone()];
    assert_eq!((purged.unused, purged.removed, purged.next), (both, 2, None));
    assert_eq!(fixture.second().get(&ada.name).await, None);
    let next = fixture.second().take(&fixture.contender("bob", &ada.name)).await;
    assert!(
        next.token > old,
        "token {} after {old} and a clean-up",
        next.token
    );
}

/// What is held stays, however short its ttl; and so does what was given back within ten of its own ttls.
pub async fn records_in_use_outlive_a_clean_up(fixture: &Fixture) {
    let Some(cleaner) = fixture.cleaner() else { return };
    let held = fixture.contender("ada", &fixture.name());
    let token = fixture.first().take(&held).await.token;
    let young = fixture.contender("bob", &fixture.name());
    released(fixture, &young).await;
    until_unused(fixture).await;
    let purged = purge(&cleaner, &everything(fixture, Purging::Removes)).await;
    assert_eq!((purged.unused, purged.removed), (Vec::new(), 0));
    fixture.first().extend(&held.renew(token)).await;
    let _still_there = fixture.first().lease(&young.name).await;
}

/// What was used a moment ago stays, though its term began long ago: its token alone would let it go.
pub async fn record_of_an_old_term_that_was_just_used_outlives_a_clean_up(fixture: &Fixture) {
    // Where the first visit only notes, nothing goes by it.
    let cleaner = fixture.cleaner().filter(|cleaner| !cleaner.notes_first());
    let Some(cleaner) = cleaner else { return };
    let ttl = fixture.traits().ttl_min;
    for _standstill in 0..STANDSTILLS_MAX {
        let ada = fixture.contender("ada", &fixture.name());
        let token = fixture.first().take(&ada).await.token;
        sleep(ttl.duration() * (PURGE_TTLS_MIN + 1) + MARGIN).await;
        let used = Instant::now();
        fixture.first().extend(&ada.with_ttl(ttl).renew(token)).await;
        fixture.first().vacate(&ada.release(token)).await;
        let purged = purge(&cleaner, &everything(fixture, Purging::Removes)).await;
        if used.elapsed() < ttl.duration() * (PURGE_TTLS_MIN - 1) {
            assert!(!purged.unused.contains(&ada.name), "{purged:?}");
            let _still_there = fixture.first().lease(&ada.name).await;
            return;
        }
    }
    panic!("the machine stood still {STANDSTILLS_MAX} times");
}

/// What cannot be understood stays, and so does a record whose next token would not be greater.
pub async fn records_that_must_be_kept_outlive_a_clean_up(fixture: &Fixture) {
    let Some(cleaner) = fixture.cleaner() else { return };
    for corruption in [Corruption::LastToken, Corruption::Alien] {
        let ada = brief(fixture, &fixture.name());
        released(fixture, &ada).await;
        until_unused(fixture).await;
        if !fixture.corrupt(&ada.name, corruption).await {
            let _removed_for_the_next = purge(&cleaner, &everything(fixture, Purging::Removes)).await;
            continue;
        }
        until_unused(fixture).await;
        let before = fixture.snapshot(&ada.name).await;
        let purged = purge(&cleaner, &everything(fixture, Purging::Removes)).await;
        assert_eq!(
            (purged.unused, purged.removed),
            (Vec::new(), 0),
            "after {corruption:?}"
        );
        fixture.assert_unchanged(&ada.name, &before, "a clean-up").await;
    }
}

/// A look says the same and removes nothing; its pages join without loss or duplicate, whatever stands among
/// the names, and stay under their prefix.
pub async fn looking_for_unused_records_removes_none(fixture: &Fixture) {
    let Some(cleaner) = fixture.cleaner() else { return };
    let mut names = Vec::new();
    for number in 0..5 {
        let name = fixture.named(&format!("{}/a/{number}", fixture.unique()));
        released(fixture, &brief(fixture, &name)).await;
        names.push(name);
    }
    for stray in ["/a/1//1", "/a/1//2", "/a/1//3"] {
        let _there = fixture.stray(&format!("{}{stray}", fixture.unique())).await;
    }
    let beside = fixture.named(&format!("{}/b", fixture.unique()));
    released(fixture, &brief(fixture, &beside)).await;
    until_unused(fixture).await;
    let mut page = Purge {
        prefix: format!("{}/a/", fixture.unique()),
        limit: 2,
        ..everything(fixture, Purging::OnlyLooks)
    };
    let mut found = Vec::new();
    for _page in 0..10 {
        let purged = purge(&cleaner, &page).await;
        assert_eq!(purged.removed, 0);
        found.extend(purged.unused);
        page.after = purged.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!(page.after, None, "pages without end");
    assert_eq!(found, names);
    for name in names.iter().chain([&beside]) {
        let _still_there = fixture.first().lease(name).await;
    }
}

/// A page outside 1 to 1,000 is refused.
pub async fn page_of_a_clean_up_outside_its_range_is_refused(fixture: &Fixture) {
    let Some(cleaner) = fixture.cleaner() else { return };
    for limit in [0, 1_001] {
        let page = Purge {
            limit,
            ..everything(fixture, Purging::OnlyLooks)
        };
        let refused = cleaner.purge(&page).await.expect_err("not a page");
        assert_eq!(refused.fault, Fault::Invalid, "{refused}");
    }
}
