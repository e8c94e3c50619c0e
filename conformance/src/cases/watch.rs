//! Watching: what happened is told, in order, to those whom it concerns, and to nobody for nothing.

use crate::client::PATIENCE;
use crate::{Contender, Fixture};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::{Change, FencingToken, Interest, LeaseName, Scope, Watch, WatchEvent};
use tokio::time::{Instant, timeout};

/// Renewals of which a watch is to be silent.
const RENEWALS: usize = 24;

/// What may be told beside them: a quorum tells a change again when a slower member has it, and a connection
/// that is made anew tells of a gap.
const BESIDE_MAX: usize = 8;

/// Between two renewals, so that a watch that tells of them tells of each by itself.
const BETWEEN_RENEWALS: Duration = Duration::from_millis(20);

/// One change that a watch told of.
type Told = (LeaseName, Change, Option<FencingToken>);

/// The next change; gaps are passed over, because a gap says only that one should look.
async fn next_change(watch: &mut dyn Watch) -> Told {
    loop {
        match watch.next().await {
            Ok(WatchEvent::Changed { name, change, token }) => return (name, change, token),
            Ok(WatchEvent::Gap) => {}
            Err(error) => panic!("the watch ended: {error}"),
        }
    }
}

/// Waits for this change of this lease. Others that are told before it must be repetitions of what was:
/// earlier changes, of this lease.
async fn expect(watch: &mut dyn Watch, name: &LeaseName, change: Change, token: FencingToken) {
    let began = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let Ok(told) = timeout(left, next_change(watch)).await else {
            panic!("{change:?} of \"{name}\", term {token}, was not told within {PATIENCE:?}")
        };
        assert_eq!(&told.0, name, "another lease than the watched one: {told:?}");
        assert!(
            told.2.is_none_or(|of| of <= token),
            "told of a later term than {token}: {told:?}"
        );
        if told.1 == change && told.2.is_none_or(|of| of == token) {
            return;
        }
    }
}

fn of(name: &LeaseName) -> Scope {
    Scope::Name(name.clone())
}

/// A release wakes those who watch the lease.
pub async fn watch_tells_of_a_release(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return; // The store declares that it cannot be watched, and says so: that was checked.
    };
    fixture.first().vacate(&ada.release(grant.token)).await;
    expect(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
}

/// A client's watch also tells of what went through the same client.
pub async fn watch_tells_of_changes_through_its_own_client(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let Some(mut watch) = fixture.watch(fixture.first(), &of(&ada.name)).await else {
        return;
    };
    let grant = fixture.first().take(&ada).await;
    expect(&mut *watch, &ada.name, Change::Taken, grant.token).await;
    fixture.first().ask(&ada.name, grant.token).await;
    expect(&mut *watch, &ada.name, Change::Asked, grant.token).await;
    fixture.first().vacate(&ada.release(grant.token)).await;
    expect(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
}

/// A new term is told, whether the name was new, vacant, expired, or held by an earlier attempt.
pub async fn watch_tells_of_every_new_term(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    let new = fixture.first().take(&ada).await;
    expect(&mut *watch, &ada.name, Change::Taken, new.token).await;
    let later = fixture.first().take(&ada.at_attempt(2)).await;
    expect(&mut *watch, &ada.name, Change::Taken, later.token).await;
    fixture
        .first()
        .vacate(&ada.at_attempt(2).release(later.token))
        .await;
    expect(&mut *watch, &ada.name, Change::Vacated, later.token).await;
    let vacant = fixture.let_expire(&bob).await;
    expect(&mut *watch, &ada.name, Change::Taken, vacant.token).await;
    let expired = fixture.first().take(&ada.at_attempt(3)).await;
    expect(&mut *watch, &ada.name, Change::Taken, expired.token).await;
}

/// A wish is told to the holder that watches its own lease.
pub async fn watch_tells_of_a_wish(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let Some(mut watch) = fixture.watch(fixture.first(), &of(&ada.name)).await else {
        return;
    };
    fixture.second().ask(&ada.name, grant.token).await;
    expect(&mut *watch, &ada.name, Change::Asked, grant.token).await;
}

/// Whoever waits for an end is told of the wish for it and of the release, whoever has the lease by then.
pub async fn watch_of_ends_tells_of_a_wish_and_of_a_release(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let Some(mut watch) = fixture
        .watch_for(fixture.second(), &of(&ada.name), Interest::Ends)
        .await
    else {
        return;
    };
    fixture.first().ask(&ada.name, grant.token).await;
    expect(&mut *watch, &ada.name, Change::Asked, grant.token).await;
    fixture.first().vacate(&ada.release(grant.token)).await;
    expect(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
    let bob = fixture.contender("bob", &ada.name);
    let next = fixture.first().take(&bob).await;
    fixture.first().vacate(&bob.release(next.token)).await;
    expect(&mut *watch, &ada.name, Change::Vacated, next.token).await;
}

/// Whoever waits for every end is told of one, by itself or by what followed, also where the next term has
/// begun before the store looked.
pub async fn watch_of_every_end_tells_of_one_that_was_followed_at_once(fixture: &Fixture) {
    let mut holder = fixture.contender("ada", &fixture.name());
    let mut token = fixture.first().take(&holder).await.token;
    let Some(mut watch) = fixture
        .watch_for(fixture.second(), &of(&holder.name), Interest::EveryEnd)
        .await
    else {
        return;
    };
    for next in ["bob", "ada", "bob"] {
        fixture.first().vacate(&holder.release(token)).await;
        let ended = token;
        holder = fixture.contender(next, &holder.name);
        token = fixture.first().take(&holder).await.token;
        let is_told = |(_, change, of): &Told| match change {
            Change::Vacated => of.is_none_or(|of| of >= ended),
            Change::Taken => of.is_none_or(|of| of > ended),
            Change::Asked => false,
        };
        let told = async { while !is_told(&next_change(&mut *watch).await) {} };
        let told = timeout(PATIENCE, told).await;
        assert!(
            told.is_ok(),
            "the end of term {ended} was not told within {PATIENCE:?}"
        );
    }
}

/// Giving back a term that had expired wakes those who watch, too.
pub async fn watch_tells_of_the_release_of_an_expired_term(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.let_expire(&ada).await;
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    fixture.first().vacate(&ada.release(grant.token)).await;
    expect(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
}

/// A record that was removed may be taken, so its watchers are told.
pub async fn watch_tells_of_a_removed_record(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    if fixture.purge(&ada.name).await {
        expect(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
    }
}

/// A watch is in place when it answers: what happens at once after that is told.
pub async fn watch_is_in_place_when_it_answers(fixture: &Fixture) {
    for _ in 0..12 {
        let ada = fixture.contender("ada", &fixture.name());
        let grant = fixture.first().take(&ada).await;
        let release = ada.release(grant.token);
        let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
            return;
        };
        fixture.first().vacate(&release).await;
        expect(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
    }
}

/// Renewals are not told: they would wake every standby for nothing.
pub async fn watch_is_silent_about_renewals(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    let grant = fixture.first().take(&ada).await;
    expect(&mut *watch, &ada.name, Change::Taken, grant.token).await;
    let mut beside = Vec::new();
    for _ in 0..RENEWALS {
        fixture.first().extend(&ada.renew(grant.token)).await;
        if let Ok(told) = timeout(BETWEEN_RENEWALS, watch.next()).await {
            beside.push(told);
        }
    }
    fixture.first().vacate(&ada.release(grant.token)).await;
    // What was told of the renewals is told before the release.
    let until_released = async {
        loop {
            match watch.next().await {
                Ok(WatchEvent::Changed {
                    change: Change::Vacated,
                    ..
                }) => return,
                told => beside.push(told),
            }
        }
    };
    if timeout(PATIENCE, until_released).await.is_err() {
        panic!("the release was not told within {PATIENCE:?}");
    }
    for told in &beside {
        let is_repetition = |told: &WatchEvent| match told {
            WatchEvent::Changed { name, change, .. } => *name == ada.name && *change == Change::Taken,
            WatchEvent::Gap => true,
        };
        assert!(told.as_ref().is_ok_and(is_repetition), "told of: {told:?}");
    }
    assert!(
        beside.len() <= BESIDE_MAX,
        "{RENEWALS} renewals were told of: {beside:?}"
    );
}

/// Takes and gives back the lease: two changes.
async fn cause_changes(fixture: &Fixture, contender: &Contender) {
    let grant = fixture.first().take(contender).await;
    fixture.first().vacate(&contender.release(grant.token)).await;
}

/// A watch of one lease tells of no other, however alike their names.
pub async fn watch_of_one_lease_tells_of_no_other(fixture: &Fixture) {
    let unique = fixture.unique();
    let ada = fixture.contender("ada", &fixture.named(&format!("{unique}/a.c")));
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    for ending in ["/a.c/d", "/abc", "/A.C", "/a", "/a.cc"] {
        let other = fixture.named(&format!("{unique}{ending}"));
        cause_changes(fixture, &ada.for_lease(&other)).await;
    }
    let grant = fixture.first().take(&ada).await;
    expect(&mut *watch, &ada.name, Change::Taken, grant.token).await;
}

/// A watch of a prefix tells of every lease under it, also of new ones, and of no other.
pub async fn watch_of_a_prefix_tells_of_what_is_under_it(fixture: &Fixture) {
    let unique = fixture.unique();
    let prefix = format!("{unique}/a.c%_*");
    let Some(mut watch) = fixture
        .watch(fixture.second(), &Scope::Prefix(prefix.clone()))
        .await
    else {
        return;
    };
    for ending in ["/abcdef", "/a.c", "/aXc%_*", "/A.C%_*", "/x/a.c%_*"] {
        let other = fixture.named(&format!("{unique}{ending}"));
        cause_changes(fixture, &fixture.contender("ada", &other)).await;
    }
    for ending in ["", "/under", "more"] {
        let ada = fixture.contender("ada", &fixture.named(&format!("{prefix}{ending}")));
        let grant = fixture.first().take(&ada).await;
        expect_among(&mut *watch, &prefix, &ada.name, grant.token).await;
    }
}

/// Waits until this lease was taken; others that are told of must be under the prefix.
async fn expect_among(watch: &mut dyn Watch, prefix: &str, name: &LeaseName, token: FencingToken) {
    let began = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let Ok(told) = timeout(left, next_change(watch)).await else {
            panic!("that \"{name}\" was taken was not told within {PATIENCE:?}")
        };
        assert!(
            told.0.as_str().starts_with(prefix),
            "not under \"{prefix}\": {told:?}"
        );
        if told == (name.clone(), Change::Taken, Some(token)) {
            return;
        }
    }
}

/// A watch of everything tells of every lease.
pub async fn watch_of_everything_tells_of_every_lease(fixture: &Fixture) {
    let Some(mut watch) = fixture
        .watch(fixture.second(), &Scope::Prefix(String::new()))
        .await
    else {
        return;
    };
    for _ in 0..3 {
        let ada = fixture.contender("ada", &fixture.name());
        let grant = fixture.first().take(&ada).await;
        expect_among(&mut *watch, "", &ada.name, grant.token).await;
    }
}

/// The next event may be waited for in pieces: whatever is dropped in between, none is lost.
pub async fn dropping_the_wait_for_an_event_loses_none(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    for attempt in 1..=10 {
        let current = ada.at_attempt(attempt);
        let grant = fixture.first().take(&current).await;
        expect_in_pieces(&mut *watch, &ada.name, Change::Taken, grant.token).await;
        fixture.first().vacate(&current.release(grant.token)).await;
        expect_in_pieces(&mut *watch, &ada.name, Change::Vacated, grant.token).await;
    }
}

/// As [`expect`], but every wait for an event is dropped after a moment, and begun again.
async fn expect_in_pieces(watch: &mut dyn Watch, name: &LeaseName, change: Change, token: FencingToken) {
    let began = Instant::now();
    for milliseconds in (0..7).cycle() {
        assert!(
            began.elapsed() < PATIENCE,
            "{change:?} of term {token} was not told within {PATIENCE:?}"
        );
        match timeout(Duration::from_millis(milliseconds), watch.next()).await {
            Ok(Ok(WatchEvent::Gap)) => {}
            Ok(Ok(WatchEvent::Changed {
                name: told,
                change: happened,
                token: of,
            })) => {
                if &told == name && happened == change && of.is_none_or(|of| of == token) {
                    return;
                }
            }
            Ok(Err(error)) => panic!("the watch ended: {error}"),
            Err(_) => {}
        }
    }
}

/// The terms of a lease are told in their order, however many and however fast.
pub async fn watch_tells_terms_in_their_order(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let Some(mut watch) = fixture.watch(fixture.second(), &of(&ada.name)).await else {
        return;
    };
    let mut last = None;
    for attempt in 1..=20 {
        let current = ada.at_attempt(attempt);
        let grant = fixture.first().take(&current).await;
        fixture.first().vacate(&current.release(grant.token)).await;
        last = Some(grant.token);
    }
    let mut seen: Option<FencingToken> = None;
    let mut told_before: BTreeSet<(FencingToken, bool)> = BTreeSet::new();
    let began = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let Ok(told) = timeout(left, next_change(&mut *watch)).await else {
            panic!("the end of term {last:?} was not told within {PATIENCE:?}, only {seen:?}")
        };
        if let Some(token) = told.2 {
            assert!(
                seen.is_none_or(|seen| seen <= token),
                "term {token} was told of after term {seen:?}"
            );
            seen = Some(token);
            // Changes may be left out where the store looks from time to time, and may be repeated; but what
            // is told of first must have been first.
            let (begins, ends) = (told.1 == Change::Taken, told.1 == Change::Vacated);
            assert!(
                !begins || told_before.contains(&(token, false)) || !told_before.contains(&(token, true)),
                "the begin of term {token} was told of after its end"
            );
            told_before.insert((token, ends));
        }
        if told.1 == Change::Vacated && seen == last {
            return;
        }
    }
}

/// Several watches each hear everything, and ending one ends no other.
pub async fn watches_are_independent(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let scope = of(&ada.name);
    let (Some(mut one), Some(mut two), Some(mut three)) = (
        fixture.watch(fixture.first(), &scope).await,
        fixture.watch(fixture.first(), &scope).await,
        fixture.watch(fixture.second(), &scope).await,
    ) else {
        return;
    };
    let grant = fixture.first().take(&ada).await;
    for watch in [&mut one, &mut two, &mut three] {
        expect(&mut **watch, &ada.name, Change::Taken, grant.token).await;
    }
    drop(one);
    fixture.second().vacate(&ada.release(grant.token)).await;
    for watch in [&mut two, &mut three] {
        expect(&mut **watch, &ada.name, Change::Vacated, grant.token).await;
    }
}
