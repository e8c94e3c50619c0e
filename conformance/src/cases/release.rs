//! Giving a lease back: only the very term, only once, and never a later one.

use crate::Fixture;
use crate::fixture::higher;
use std::time::Duration;
use tenure_core::{End, Occupancy, Released};

/// A released lease is granted to the next who asks, at once, with a greater token.
pub async fn release_vacates_and_the_next_is_granted_at_once(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.first().take(&ada).await;
    fixture.first().vacate(&ada.release(old.token)).await;
    let new = fixture.second().take(&bob).await;
    assert!(new.token > old.token, "{new:?} after {old:?}");
    assert_eq!(fixture.first().lease(&ada.name).await.holder, bob.candidate);
}

/// The new term knows who released, by which token, and how long nobody held the lease.
pub async fn predecessor_that_released_is_reported(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.first().take(&ada).await;
    let began = tokio::time::Instant::now();
    fixture.first().vacate(&ada.release(old.token)).await;
    fixture.both_look(&ada.name).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = fixture
        .second()
        .take(&bob)
        .await
        .predecessor
        .expect("a predecessor");
    let vacant_at_most = began.elapsed() + Duration::from_millis(20);
    assert_eq!(
        (before.candidate, before.token),
        (ada.candidate.id.clone(), old.token)
    );
    assert_eq!(before.end, End::Released);
    assert!(
        before.vacant_for >= Duration::from_millis(30) && before.vacant_for <= vacant_at_most,
        "the lease was vacant for 50 ms to {vacant_at_most:?}, not {:?}",
        before.vacant_for
    );
}

/// The record stays: vacant, with its token, incarnation and attempt.
pub async fn release_keeps_the_record(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name()).at_attempt(4);
    let grant = fixture.first().take(&contender).await;
    fixture.first().vacate(&contender.release(grant.token)).await;
    let lease = fixture.second().lease(&contender.name).await;
    assert!(lease.released, "{lease:?}");
    assert_eq!(lease.occupancy(), Occupancy::Vacant);
    assert_eq!(
        lease.remaining,
        Duration::ZERO,
        "nothing remains of a vacant lease"
    );
    assert_eq!(lease.holder, contender.candidate, "it says who held it last");
    assert_eq!(
        (lease.token, lease.attempt, lease.terms),
        (grant.token, contender.attempt, 1)
    );
}

/// Releasing again answers as before, and changes nothing.
pub async fn release_is_idempotent(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    fixture.first().vacate(&contender.release(grant.token)).await;
    let before = fixture.first().lease(&contender.name).await;
    for client in [fixture.first(), fixture.second()] {
        client.vacate(&contender.release(grant.token)).await;
    }
    let after = fixture.first().lease(&contender.name).await;
    assert_eq!(
        (after.token, after.attempt, after.terms, &after.holder),
        (before.token, before.attempt, before.terms, &before.holder)
    );
    assert!(after.released, "{after:?}");
}

/// Another process cannot release a term, whatever else it knows.
pub async fn release_by_another_incarnation_changes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    let shown = fixture
        .second()
        .fail_to_release(&ada.reborn().release(grant.token))
        .await;
    assert_eq!(shown.expect("a record").holder, ada.candidate);
    fixture
        .assert_unchanged(&ada.name, &before, "a release by another")
        .await;
}

/// A release with another token, lower or higher, is not of this term.
pub async fn release_with_another_token_changes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&ada).await;
    fixture.first().vacate(&ada.release(old.token)).await;
    let current = ada.at_attempt(2);
    let new = fixture.first().take(&current).await;
    let before = fixture.snapshot(&ada.name).await;
    for token in [old.token, higher(new.token, 1)] {
        let shown = fixture.second().fail_to_release(&current.release(token)).await;
        assert_eq!(shown.expect("a record").token, new.token);
    }
    fixture
        .assert_unchanged(&ada.name, &before, "a release with another token")
        .await;
}

/// A release with another attempt, earlier or later, is not of this term.
pub async fn release_with_another_attempt_changes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name()).at_attempt(5);
    let grant = fixture.first().take(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    for attempt in [1, 4, 6] {
        let shown = fixture
            .second()
            .fail_to_release(&ada.at_attempt(attempt).release(grant.token))
            .await;
        assert_eq!(shown.expect("a record").attempt, ada.attempt);
    }
    fixture
        .assert_unchanged(&ada.name, &before, "a release with another attempt")
        .await;
}

/// A release that arrives twice, the second time after the same process took the lease again, must not end
/// the later term.
pub async fn late_duplicate_of_a_release_never_ends_a_later_term(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&ada).await;
    let duplicate = ada.release(old.token);
    fixture.first().vacate(&duplicate).await;
    let current = ada.at_attempt(2);
    let new = fixture.first().take(&current).await;
    let before = fixture.snapshot(&ada.name).await;
    let shown = fixture.second().fail_to_release(&duplicate).await;
    assert_eq!(shown.expect("a record").token, new.token);
    fixture
        .assert_unchanged(&ada.name, &before, "a late duplicate of a release")
        .await;
    fixture.first().extend(&current.renew(new.token)).await;
}

/// The old holder, released after a take-over, learns who holds the lease now.
pub async fn release_after_a_take_over_names_the_new_holder(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.let_expire(&ada).await;
    let new = fixture.second().take(&bob).await;
    let shown = fixture.first().fail_to_release(&ada.release(old.token)).await;
    let shown = shown.expect("a record");
    assert_eq!((&shown.holder, shown.token), (&bob.candidate, new.token));
    fixture.second().extend(&bob.renew(new.token)).await;
}

/// A vacant record of another term is not the caller's, although nobody holds it.
pub async fn release_of_an_older_term_of_a_vacant_lease_is_not_yours(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.first().take(&ada).await;
    fixture.first().vacate(&ada.release(old.token)).await;
    let new = fixture.second().take(&bob).await;
    fixture.second().vacate(&bob.release(new.token)).await;
    let shown = fixture.first().fail_to_release(&ada.release(old.token)).await;
    assert_eq!(shown.expect("a record").token, new.token);
}

/// A term that expired unclaimed can still be given back.
pub async fn expired_unclaimed_term_can_be_released(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.let_expire(&contender).await;
    fixture.first().vacate(&contender.release(grant.token)).await;
    let lease = fixture.second().lease(&contender.name).await;
    assert!(lease.released, "{lease:?}");
    assert_eq!((lease.token, lease.remaining), (grant.token, Duration::ZERO));
    // Vacant, no longer just expired: the released attempt is over for good.
    fixture.first().be_superseded(&contender).await;
}

/// Releasing what has no record answers `None`, and makes none.
pub async fn release_of_a_missing_lease_makes_no_record(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let token = tenure_core::FencingToken::new(1).expect("1 is a token");
    let answer = fixture.first().release(&contender.release(token)).await;
    assert_eq!(answer, Released::NotYours(None));
    assert_eq!(fixture.second().get(&contender.name).await, None);
}
