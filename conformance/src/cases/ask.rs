//! Asking a holder to step down: a wish that it learns of, and that ends with its term.

use crate::Fixture;
use crate::fixture::higher;
use std::time::Duration;
use tenure_core::{Asked, FencingToken, Grant, Renewed, Wish};

async fn renewed_wish(fixture: &Fixture, contender: &crate::Contender, grant: &Grant) -> Wish {
    match fixture.first().renew(&contender.renew(grant.token)).await {
        Renewed::Extended { wish, .. } => wish,
        Renewed::Lost(now) => panic!("the holder's renewal was lost: {now:?}"),
    }
}

/// The holder learns of the wish with its next renewal, and with every later one of the term.
pub async fn wish_reaches_the_holder_with_its_renewal(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    assert_eq!(
        renewed_wish(fixture, &contender, &grant).await,
        Wish::Nothing,
        "before anybody asked"
    );
    assert_eq!(
        fixture.second().ask(&contender.name, grant.token).await,
        Asked::Noted
    );
    for _ in 0..2 {
        assert_eq!(
            renewed_wish(fixture, &contender, &grant).await,
            Wish::StepDown,
            "after asking"
        );
    }
}

/// Everyone who reads the lease sees the wish, as long as the term lasts.
pub async fn wish_is_seen_by_readers(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let rival = fixture.contender("bob", &contender.name);
    let grant = fixture.first().take(&contender).await;
    fixture.second().ask(&contender.name, grant.token).await;
    assert!(fixture.first().lease(&contender.name).await.asked_to_step_down);
    assert!(fixture.second().be_refused(&rival).await.asked_to_step_down);
    let again = fixture.first().take(&contender).await;
    assert!(again.again, "{again:?}");
    assert!(
        fixture.first().lease(&contender.name).await.asked_to_step_down,
        "a repeated request begins no new term, so the wish stays"
    );
}

/// Asking twice is as asking once.
pub async fn asking_twice_is_as_asking_once(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    for client in [fixture.first(), fixture.second()] {
        assert_eq!(client.ask(&contender.name, grant.token).await, Asked::Noted);
    }
    assert_eq!(renewed_wish(fixture, &contender, &grant).await, Wish::StepDown);
}

/// Asking changes neither holder, token, attempt, ttl nor expiry.
pub async fn asking_changes_nothing_else(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name()).noting("pid 7");
    let grant = fixture.first().take(&contender).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    let before = fixture.first().lease(&contender.name).await;
    fixture.second().ask(&contender.name, grant.token).await;
    let after = fixture.first().lease(&contender.name).await;
    assert!(
        after.remaining <= before.remaining,
        "asking extended the lease: {after:?} after {before:?}"
    );
    assert!(
        after.renewed_ago >= before.renewed_ago,
        "asking counted as a renewal: {after:?}"
    );
    let changed = tenure_core::Lease {
        remaining: after.remaining,
        held_for: after.held_for,
        renewed_ago: after.renewed_ago,
        asked_to_step_down: true,
        ..before
    };
    assert_eq!(after, changed, "only the wish was added");
}

/// A wish is for one term: the one after a release does not inherit it.
pub async fn wish_is_gone_after_a_release(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.first().take(&ada).await;
    fixture.second().ask(&ada.name, old.token).await;
    fixture.first().vacate(&ada.release(old.token)).await;
    let new = fixture.first().take(&bob).await;
    assert_no_wish(fixture, &bob, &new).await;
}

/// A wish is for one term: the one after an expiry does not inherit it.
pub async fn wish_is_gone_after_an_expiry(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.first().take(&ada).await;
    fixture.second().ask(&ada.name, old.token).await;
    let brief = ada.with_ttl(fixture.ttl_short());
    fixture.first().extend(&brief.renew(old.token)).await;
    fixture.wait_until_free(&ada.name).await;
    let new = fixture.first().take(&bob).await;
    assert_no_wish(fixture, &bob, &new).await;
}

/// A wish is for one term: the one that a later attempt takes does not inherit it.
pub async fn wish_is_gone_after_a_later_attempt(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&ada).await;
    fixture.second().ask(&ada.name, old.token).await;
    let later = ada.at_attempt(2);
    let new = fixture.first().take(&later).await;
    assert_no_wish(fixture, &later, &new).await;
}

async fn assert_no_wish(fixture: &Fixture, contender: &crate::Contender, grant: &Grant) {
    let lease = fixture.second().lease(&contender.name).await;
    assert!(!lease.asked_to_step_down, "nobody asked this term: {lease:?}");
    assert_eq!(
        renewed_wish(fixture, contender, grant).await,
        Wish::Nothing,
        "nobody asked this term"
    );
}

/// A wish for another token, older or newer, is for nobody.
pub async fn asking_another_term_changes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&ada).await;
    let current = ada.at_attempt(2);
    let new = fixture.first().take(&current).await;
    let before = fixture.snapshot(&ada.name).await;
    for token in [old.token, higher(new.token, 1)] {
        assert_eq!(fixture.second().ask(&ada.name, token).await, Asked::NotHeld);
    }
    fixture
        .assert_unchanged(&ada.name, &before, "asking another term")
        .await;
}

/// Nobody holds a vacant lease, so nobody can be asked.
pub async fn asking_a_vacant_lease_changes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    fixture.first().vacate(&ada.release(grant.token)).await;
    let before = fixture.snapshot(&ada.name).await;
    assert_eq!(fixture.second().ask(&ada.name, grant.token).await, Asked::NotHeld);
    fixture
        .assert_unchanged(&ada.name, &before, "asking a vacant lease")
        .await;
}

/// Nobody holds an expired lease, so nobody can be asked.
pub async fn asking_an_expired_lease_changes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.let_expire(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    assert_eq!(fixture.second().ask(&ada.name, grant.token).await, Asked::NotHeld);
    fixture
        .assert_unchanged(&ada.name, &before, "asking an expired lease")
        .await;
}

/// Asking what has no record makes none.
pub async fn asking_a_missing_lease_makes_no_record(fixture: &Fixture) {
    let name = fixture.name();
    let token = FencingToken::new(1).expect("1 is a token");
    assert_eq!(fixture.first().ask(&name, token).await, Asked::NotHeld);
    assert_eq!(fixture.second().get(&name).await, None);
}
