//! Taking a lease: who gets it, who does not, and with which token.

use crate::{Contender, Fixture};
use std::time::Duration;
use tenure_core::{Attempt, LeaseName, Occupancy, Renewed, Timekeeper, Ttl};
use tokio::time::{Instant, sleep};

/// A name that nobody used is granted at once, as the first term, without a predecessor.
pub async fn first_acquire_is_granted(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    assert!(!grant.again, "nobody had this term before: {grant:?}");
    assert_eq!(grant.predecessor, None, "nobody held the lease before");
    assert_eq!(grant.terms, 1);
}

/// The record says what was granted: holder, token, attempt, ttl, terms, note.
pub async fn grant_stands_in_the_record(fixture: &Fixture) {
    let contender = fixture
        .contender("ada", &fixture.name())
        .at_attempt(3)
        .noting("pid 7");
    let grant = fixture.first().take(&contender).await;
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(lease.name, contender.name);
    assert_eq!(lease.holder, contender.candidate);
    assert_eq!(lease.attempt, contender.attempt);
    assert_eq!(lease.note, contender.note);
    assert_eq!(
        (lease.token, lease.ttl, lease.terms),
        (grant.token, grant.ttl, grant.terms)
    );
    assert!(!lease.released && !lease.asked_to_step_down, "{lease:?}");
    assert_eq!(lease.occupancy(), Occupancy::Held);
    assert!(lease.remaining <= fixture.remaining_max(grant.ttl), "{lease:?}");
}

/// Another candidate is told who holds the lease, by which token, and how long to wait.
pub async fn second_candidate_is_told_who_holds(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let grant = fixture.first().take(&ada).await;
    let shown = fixture.second().be_refused(&bob).await;
    assert_eq!(shown.name, ada.name);
    assert_eq!(shown.holder, ada.candidate);
    assert_eq!((shown.token, shown.attempt), (grant.token, ada.attempt));
    assert!(
        !shown.remaining.is_zero() && shown.remaining <= fixture.remaining_max(grant.ttl),
        "a held lease has 0 < remaining <= ttl: {shown:?}"
    );
}

/// A request that loses leaves the record byte for byte as it was.
pub async fn losing_request_writes_nothing(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name).noting("let me in");
    fixture.first().take(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    for client in [fixture.first(), fixture.second()] {
        client.be_refused(&bob).await;
        client.be_refused(&bob.at_attempt(2)).await;
    }
    fixture
        .assert_unchanged(&ada.name, &before, "requests that lost")
        .await;
}

/// A repeated request gets the same token: this is how a lost reply is resolved.
pub async fn same_attempt_gets_the_same_token_again(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&contender).await;
    for client in [fixture.first(), fixture.second()] {
        let again = client.take(&contender).await;
        assert!(again.again, "this attempt had the term before: {again:?}");
        assert_eq!((again.token, again.terms), (grant.token, grant.terms));
    }
}

/// A repeated request extends the lease by the ttl from now: by the same one, as whoever lost a reply asks
/// for, and by another.
pub async fn same_attempt_extends_the_lease(fixture: &Fixture) {
    // A session may outlast its leases by a moment where those are long, and where they are short, stores
    // hurry.
    let brief = fixture.ttl_near(Duration::from_secs(match fixture.traits().timekeeper {
        Timekeeper::Session => 5,
        Timekeeper::Server | Timekeeper::Observer => 60,
    }));
    let contender = fixture.contender("ada", &fixture.name()).with_ttl(brief);
    fixture.first().take(&contender).await;
    fixture.both_look(&contender.name).await;
    sleep(Duration::from_millis(300) + fixture.grain()).await;
    let sent = Instant::now();
    fixture.first().take(&contender).await;
    for client in [fixture.first(), fixture.second()] {
        fixture.assert_lasts(&client.lease(&contender.name).await, sent);
    }
    let longer = contender.with_ttl(fixture.ttl_long());
    let again = fixture.first().take(&longer).await;
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(lease.ttl, again.ttl, "the record holds the last ttl");
    if longer.ttl > brief {
        assert!(
            lease.remaining > brief.duration(),
            "asking again with ttl {} should have extended the lease: {lease:?}",
            longer.ttl
        );
    }
}

/// A later attempt of the holding process takes over at once: the earlier one is given up.
pub async fn later_attempt_takes_over_at_once(fixture: &Fixture) {
    let first = fixture.contender("ada", &fixture.name());
    let second = first.at_attempt(2);
    let old = fixture.first().take(&first).await;
    let new = fixture.second().take(&second).await;
    assert!(
        new.token > old.token,
        "{new:?} must have a greater token than {old:?}"
    );
    assert!(!new.again, "{new:?}");
    assert_eq!(new.terms, old.terms + 1);
    let lost = fixture
        .first()
        .lose(&first.renew(old.token))
        .await
        .expect("a record");
    assert_eq!((lost.token, lost.attempt), (new.token, second.attempt));
}

/// An earlier attempt of the holding process came too late, and changes nothing.
pub async fn earlier_attempt_is_superseded_while_held(fixture: &Fixture) {
    let late = fixture.contender("ada", &fixture.name());
    fixture.first().take(&late.at_attempt(5)).await;
    assert_superseded_without_a_trace(fixture, &late, &[1, 4]).await;
}

/// An earlier attempt of the last holder came too late, also when the lease is vacant.
pub async fn earlier_attempt_is_superseded_while_vacant(fixture: &Fixture) {
    let late = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&late.at_attempt(5)).await;
    fixture
        .first()
        .vacate(&late.at_attempt(5).release(grant.token))
        .await;
    assert_superseded_without_a_trace(fixture, &late, &[1, 4]).await;
}

/// A late duplicate of the released attempt must not create a lease that nobody knows of.
pub async fn same_attempt_is_superseded_once_released(fixture: &Fixture) {
    let late = fixture.contender("ada", &fixture.name());
    let grant = fixture.first().take(&late.at_attempt(5)).await;
    fixture
        .first()
        .vacate(&late.at_attempt(5).release(grant.token))
        .await;
    assert_superseded_without_a_trace(fixture, &late, &[5]).await;
}

/// An earlier attempt of the last holder came too late, also when the lease has expired.
pub async fn earlier_attempt_is_superseded_after_expiry(fixture: &Fixture) {
    let late = fixture.contender("ada", &fixture.name());
    fixture.let_expire(&late.at_attempt(5)).await;
    assert_superseded_without_a_trace(fixture, &late, &[1, 4]).await;
}

async fn assert_superseded_without_a_trace(fixture: &Fixture, late: &crate::Contender, attempts: &[u64]) {
    let before = fixture.snapshot(&late.name).await;
    for attempt in attempts {
        for client in [fixture.first(), fixture.second()] {
            client.be_superseded(&late.at_attempt(*attempt)).await;
        }
    }
    fixture
        .assert_unchanged(&late.name, &before, "superseded requests")
        .await;
}

/// After a release, the next attempt of the same process is granted like anybody's.
pub async fn later_attempt_is_granted_after_release(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let old = fixture.first().take(&contender).await;
    fixture.first().vacate(&contender.release(old.token)).await;
    let new = fixture.first().take(&contender.at_attempt(2)).await;
    assert!(new.token > old.token, "{new:?} after {old:?}");
    assert!(!new.again, "{new:?}");
}

/// The attempt of an expired term is granted a new token: renewing never revives, and neither does asking.
pub async fn same_attempt_gets_a_new_token_after_expiry(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let old = fixture.let_expire(&contender).await;
    let new = fixture.second().take(&contender).await;
    assert!(new.token > old.token, "{new:?} after {old:?}");
    assert!(!new.again, "a new term is not the old one again: {new:?}");
    assert_eq!(new.terms, old.terms + 1);
}

/// A later attempt of the process whose term expired is granted, with a new token.
pub async fn later_attempt_is_granted_after_expiry(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let old = fixture.let_expire(&contender).await;
    let new = fixture.second().take(&contender.at_attempt(2)).await;
    assert!(new.token > old.token && !new.again, "{new:?} after {old:?}");
}

/// Two processes that call themselves the same are two candidates: the incarnation owns the lease.
pub async fn same_id_with_another_incarnation_is_another_candidate(fixture: &Fixture) {
    let original = fixture.contender("ada", &fixture.name());
    let clone = original.reborn();
    let grant = fixture.first().take(&original).await;
    let shown = fixture.second().be_refused(&clone).await;
    assert_eq!(shown.holder, original.candidate);
    fixture.second().be_refused(&clone.at_attempt(9)).await;
    assert!(fixture.second().lose(&clone.renew(grant.token)).await.is_some());
    fixture.first().extend(&original.renew(grant.token)).await;
}

/// Attempts count within one incarnation: another's high number does not supersede a newcomer's first.
pub async fn attempts_of_other_incarnations_are_not_compared(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name()).at_attempt(900);
    let bob = fixture.contender("bob", &ada.name);
    let held = fixture.first().take(&ada).await;
    fixture.second().be_refused(&bob).await;
    fixture.second().be_refused(&bob.at_attempt(901)).await;
    fixture.first().vacate(&ada.release(held.token)).await;
    let grant = fixture.second().take(&bob).await;
    assert!(grant.token > held.token, "{grant:?} after {held:?}");
    assert_eq!(
        fixture.first().lease(&ada.name).await.attempt,
        Attempt::FIRST,
        "the record holds the new holder's attempt"
    );
}

/// Leases with different names do not touch each other.
pub async fn leases_are_independent_of_each_other(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &fixture.name());
    fixture.first().take(&ada).await;
    let before = fixture.snapshot(&ada.name).await;
    let grant = fixture.first().take(&bob).await;
    fixture.first().extend(&bob.renew(grant.token)).await;
    fixture.first().vacate(&bob.release(grant.token)).await;
    fixture
        .assert_unchanged(&ada.name, &before, "requests for another lease")
        .await;
}

/// One process may hold many leases, each by the attempt that took it.
pub async fn one_process_holds_many_leases(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let names: Vec<LeaseName> = (0..5).map(|_| fixture.name()).collect();
    for (name, attempt) in names.iter().zip(1..) {
        fixture
            .first()
            .take(&ada.for_lease(name).at_attempt(attempt))
            .await;
    }
    for (name, attempt) in names.iter().zip(1..) {
        let again = fixture
            .second()
            .take(&ada.for_lease(name).at_attempt(attempt))
            .await;
        assert!(
            again.again,
            "attempts of other leases must not disturb \"{name}\": {again:?}"
        );
    }
}

/// Every term is counted, for people: release, expiry and a later attempt each begin a new one.
pub async fn terms_are_counted(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let one = fixture.first().take(&ada).await;
    let two = fixture.first().take(&ada.at_attempt(2)).await;
    fixture
        .first()
        .vacate(&ada.at_attempt(2).release(two.token))
        .await;
    let three = fixture.let_expire(&bob).await;
    let four = fixture.first().take(&ada.at_attempt(3)).await;
    assert_eq!(
        [one.terms, two.terms, three.terms, four.terms],
        [1, 2, 3, 4],
        "each term counts once"
    );
    assert_eq!(fixture.second().lease(&ada.name).await.terms, 4);
}

/// The store says which ttl it granted, keeps to its own range, and to what it said: the lease lasts so long,
/// whether it was just taken, asked for again or renewed.
pub async fn granted_ttl_is_reported(fixture: &Fixture) {
    let traits = fixture.traits();
    for ttl in [
        traits.ttl_min,
        fixture.ttl_short(),
        fixture.ttl_long(),
        traits.ttl_max,
    ] {
        let contender = fixture.contender("ada", &fixture.name()).with_ttl(ttl);
        let sent = Instant::now();
        let grant = fixture.first().take(&contender).await;
        assert_is_as_granted(fixture, &contender, grant.ttl, sent).await;
        // Stores hurry where the ttl is short, and a slow machine has none to spare.
        if ttl < fixture.ttl_long() {
            continue;
        }
        let sent = Instant::now();
        let again = fixture.first().take(&contender).await;
        assert_is_as_granted(fixture, &contender, again.ttl, sent).await;
        let sent = Instant::now();
        let renewed = fixture.first().renew(&contender.renew(grant.token)).await;
        let Renewed::Extended { ttl, .. } = renewed else {
            panic!("the holder's renewal was lost: {renewed:?}")
        };
        assert_is_as_granted(fixture, &contender, ttl, sent).await;
    }
}

async fn assert_is_as_granted(fixture: &Fixture, contender: &Contender, granted: Ttl, sent: Instant) {
    let traits = fixture.traits();
    assert!(
        (traits.ttl_min..=traits.ttl_max).contains(&granted),
        "{contender} was granted {granted}, outside {} to {}",
        traits.ttl_min,
        traits.ttl_max
    );
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(lease.ttl, granted, "the record holds the granted ttl");
    assert!(lease.remaining <= fixture.remaining_max(granted), "{lease:?}");
    fixture.assert_lasts(&lease, sent);
}
