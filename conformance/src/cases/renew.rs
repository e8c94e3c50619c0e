//! Extending a lease: only the very term, only while it lasts.

use crate::Fixture;
use crate::fixture::higher;
use std::time::Duration;
use tenure_core::{FencingToken, Occupancy, Renewed, Wish};

/// A renewal extends the lease by its ttl from now.
pub async fn renewal_extends_the_lease(fixture: &Fixture) {
    let brief = fixture.ttl_near(Duration::from_secs(60));
    let contender = fixture.contender("ada", &fixture.name()).with_ttl(brief);
    let grant = fixture.first().take(&contender).await;
    let longer = contender.with_ttl(fixture.ttl_long());
    let Renewed::Extended { ttl, wish } = fixture.second().renew(&longer.renew(grant.token)).await else {
        panic!("the holder's renewal was lost");
    };
    assert_eq!(wish, Wish::Nothing, "nobody asked");
    let lease = fixture.first().lease(&contender.name).await;
    assert_eq!(lease.ttl, ttl, "the record holds the granted ttl");
    assert!(lease.remaining <= fixture.remaining_max(ttl), "{lease:?}");
    if longer.ttl > brief {
        assert!(
            lease.remaining > brief.duration(),
            "renewing with ttl {ttl} should have extended: {lease:?}"
        );
    }
}

/// A renewal may also shorten: the ttl counts from now, not from the old expiry.
pub async fn renewal_with_a_shorter_ttl_counts_from_now(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    let brief = contender.with_ttl(fixture.ttl_short());
    let Renewed::Extended { ttl, .. } = fixture.first().renew(&brief.renew(grant.token)).await else {
        panic!("the holder's renewal was lost");
    };
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(lease.ttl, ttl);
    assert!(lease.remaining <= fixture.remaining_max(ttl), "{lease:?}");
}

/// A renewal changes neither holder, token, attempt, note nor the count of terms.
pub async fn renewal_changes_neither_holder_nor_token(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name()).noting("pid 7");
    let grant = fixture.first().take(&contender).await;
    for client in [fixture.first(), fixture.second(), fixture.first()] {
        client.extend(&contender.renew(grant.token)).await;
        let lease = fixture.second().lease(&contender.name).await;
        assert_eq!(
            (lease.holder, lease.attempt),
            (contender.candidate.clone(), contender.attempt)
        );
        assert_eq!((lease.token, lease.terms), (grant.token, grant.terms));
        assert_eq!(lease.note, contender.note);
    }
}

/// A renewal that comes after the expiry is lost, although nobody took the lease yet.
pub async fn renewal_never_revives_an_expired_lease(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.let_expire(&contender).await;
    let before = fixture.snapshot(&contender.name).await;
    for client in [fixture.first(), fixture.second()] {
        let now = client
            .lose(&contender.renew(grant.token))
            .await
            .expect("a record");
        assert_eq!(now.occupancy(), Occupancy::Expired, "{now:?}");
        assert_eq!(now.token, grant.token);
    }
    fixture
        .assert_unchanged(&contender.name, &before, "a renewal that came too late")
        .await;
}

/// A renewal that arrives after the release is lost.
pub async fn renewal_never_revives_a_released_lease(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    fixture.first().vacate(&contender.release(grant.token)).await;
    let before = fixture.snapshot(&contender.name).await;
    for client in [fixture.first(), fixture.second()] {
        let now = client
            .lose(&contender.renew(grant.token))
            .await
            .expect("a record");
        assert_eq!(now.occupancy(), Occupancy::Vacant, "{now:?}");
    }
    fixture
        .assert_unchanged(&contender.name, &before, "a renewal after the release")
        .await;
}

/// Another process cannot renew a term, whatever else it knows.
pub async fn renewal_by_another_incarnation_is_lost(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    let now = fixture.second().lose(&ada.reborn().renew(grant.token)).await;
    assert_eq!(now.expect("a record").holder, ada.candidate);
    fixture
        .assert_unchanged(&ada.name, &before, "a renewal by another")
        .await;
}

/// A renewal with another token, lower or higher, is not of this term.
pub async fn renewal_with_another_token_is_lost(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&ada).await;
    fixture.first().vacate(&ada.release(old.token)).await;
    let current = ada.at_attempt(2);
    let new = fixture.first().take(&current).await;
    let before = fixture.snapshot(&ada.name).await;
    for token in [old.token, higher(new.token, 1)] {
        let now = fixture.second().lose(&current.renew(token)).await;
        assert_eq!(now.expect("a record").token, new.token);
    }
    fixture
        .assert_unchanged(&ada.name, &before, "a renewal with another token")
        .await;
}

/// A renewal with another attempt, earlier or later, is not of this term.
pub async fn renewal_with_another_attempt_is_lost(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name()).at_attempt(5);
    let grant = fixture.first().take(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    for attempt in [1, 4, 6] {
        let other = ada.at_attempt(attempt);
        let now = fixture.second().lose(&other.renew(grant.token)).await;
        assert_eq!(now.expect("a record").attempt, ada.attempt);
    }
    fixture
        .assert_unchanged(&ada.name, &before, "a renewal with another attempt")
        .await;
}

/// Renewing what has no record answers `None`, and makes none.
pub async fn renewal_of_a_missing_lease_is_lost(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let token = FencingToken::new(1).expect("1 is a token");
    let answer = fixture.first().renew(&contender.renew(token)).await;
    assert_eq!(answer, Renewed::Lost(None));
    assert_eq!(fixture.second().get(&contender.name).await, None);
}

/// The old holder learns with its next renewal who holds the lease now, and disturbs nothing.
pub async fn renewal_after_a_take_over_names_the_new_holder(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.let_expire(&ada).await;
    let new = fixture.second().take(&bob).await;
    let before = fixture.snapshot(&ada.name).await;
    let now = fixture.first().lose(&ada.renew(old.token)).await;
    let now = now.expect("a record");
    assert_eq!((&now.holder, now.token), (&bob.candidate, new.token));
    assert_eq!(now.occupancy(), Occupancy::Held);
    fixture
        .assert_unchanged(&ada.name, &before, "a renewal after a take-over")
        .await;
}

/// A renewal whose record was removed is lost: it makes no new record.
pub async fn renewal_never_brings_a_removed_record_back(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    if fixture.purge(&contender.name).await {
        let now = fixture.first().lose(&contender.renew(grant.token)).await;
        assert_eq!(now, None, "the record is gone");
        let shown = fixture
            .first()
            .fail_to_release(&contender.release(grant.token))
            .await;
        assert_eq!(shown, None, "the record is gone");
        assert_eq!(fixture.second().get(&contender.name).await, None);
    }
}
