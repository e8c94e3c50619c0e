//! The end of a lease by time: never early, soon after, and by the record's own ttl.

use crate::client::{Client, LOOK_EVERY, PATIENCE};
use crate::fixture::CLOCK_GRAIN;
use crate::{Contender, Fixture};
use std::time::Duration;
use tenure_core::{Acquired, End, Grant, Occupancy, Renewed, Timekeeper};
use tokio::time::{Instant, sleep};

/// The ttl of a lease that is renewed a few times and then runs out.
const SHORT_BUT_RENEWED: Duration = Duration::from_millis(600);

/// Asks until the lease is granted; answers the grant and when it had arrived.
async fn ask_until_granted(fixture: &Fixture, contender: &Contender, patience: Duration) -> (Grant, Instant) {
    let began = Instant::now();
    loop {
        match fixture.second().acquire(&contender.acquire()).await {
            Acquired::Granted(grant) => return (grant, Instant::now()),
            Acquired::Held(lease) => {
                assert!(
                    began.elapsed() < patience,
                    "no take-over within {patience:?}: {lease:?}"
                );
                sleep(LOOK_EVERY.min(lease.remaining)).await;
            }
            Acquired::Superseded => panic!("nothing superseded {contender}"),
        }
    }
}

/// A lease is never granted to another before its ttl is over, counted from before it was asked for, and is
/// granted soon after.
pub async fn take_over_happens_after_the_ttl_and_not_before(fixture: &Fixture) {
    let ada = fixture
        .contender("ada", &fixture.name())
        .with_ttl(fixture.ttl_short());
    let bob = fixture.contender("bob", &ada.name);
    let sent = Instant::now();
    let old = fixture.first().take(&ada).await;
    let (new, granted) = ask_until_granted(fixture, &bob, old.ttl.duration() + PATIENCE).await;
    let after = granted - sent;
    assert!(
        after + CLOCK_GRAIN >= old.ttl.duration(),
        "a lease of {} was granted to another {after:?} after it was asked for",
        old.ttl
    );
    assert!(new.token > old.token, "{new:?} after {old:?}");
}

/// The ttl counts from the last renewal: a renewed lease lasts as long again.
pub async fn take_over_happens_after_the_last_renewal_and_not_before(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.first().take(&ada).await;
    sleep(Duration::from_millis(100)).await;
    let brief = ada.with_ttl(fixture.ttl_short());
    let sent = Instant::now();
    let Renewed::Extended { ttl, .. } = fixture.first().renew(&brief.renew(old.token)).await else {
        panic!("the holder's renewal was lost");
    };
    let (_, granted) = ask_until_granted(fixture, &bob, ttl.duration() + PATIENCE).await;
    let after = granted - sent;
    assert!(
        after + CLOCK_GRAIN >= ttl.duration(),
        "a lease of {ttl} was granted to another {after:?} after its renewal"
    );
}

/// Who had looked at the lease before it was renewed waits from the last renewal on, like everybody.
pub async fn take_over_waits_for_the_last_of_several_renewals(fixture: &Fixture) {
    const RENEWALS: u32 = 3;
    let ttl = fixture.ttl_near(SHORT_BUT_RENEWED);
    let ada = fixture.contender("ada", &fixture.name()).with_ttl(ttl);
    let bob = fixture.contender("bob", &ada.name);
    let mut sent = Instant::now();
    let old = fixture.first().take(&ada).await;
    let renewing = async {
        for _ in 0..RENEWALS {
            sleep(old.ttl.duration() / (RENEWALS + 1)).await;
            let asked = Instant::now();
            match fixture.first().renew(&ada.renew(old.token)).await {
                Renewed::Extended { .. } => sent = asked,
                // The machine stood still for too long; the last renewal in time is what counts.
                Renewed::Lost(_) => break,
            }
        }
    };
    let patience = old.ttl.duration() * (RENEWALS + 1) + PATIENCE;
    let ((_, granted), ()) = tokio::join!(ask_until_granted(fixture, &bob, patience), renewing);
    let after = granted - sent;
    assert!(
        after + CLOCK_GRAIN >= old.ttl.duration(),
        "a lease of {} was granted to another {after:?} after its last renewal",
        old.ttl
    );
}

/// Once the record says that the lease has expired, the very next request gets it.
pub async fn expired_lease_is_granted_at_once(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let old = fixture.let_expire(&ada).await;
    let new = fixture.second().take(&bob).await;
    assert!(new.token > old.token, "{new:?} after {old:?}");
    assert!(!new.again, "{new:?}");
}

/// The new term knows who let the lease expire, by which token, and how long nobody held it.
pub async fn predecessor_that_expired_is_reported(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name);
    let sent = Instant::now();
    let old = fixture.let_expire(&ada).await;
    sleep(Duration::from_millis(50)).await;
    let grant = fixture.second().take(&bob).await;
    let vacant_at_most = (sent.elapsed() + CLOCK_GRAIN).saturating_sub(old.ttl.duration());
    let before = grant.predecessor.expect("a predecessor");
    assert_eq!(
        (before.candidate, before.token),
        (ada.candidate.id.clone(), old.token)
    );
    assert_eq!(before.end, End::Expired);
    assert!(
        before.vacant_for >= Duration::from_millis(30) && before.vacant_for <= vacant_at_most,
        "nobody held the lease for 50 ms to {vacant_at_most:?}, not {:?}",
        before.vacant_for
    );
}

/// An expired record stays, says so, and has nothing remaining.
pub async fn expired_record_stays(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name()).noting("pid 7");
    let grant = fixture.let_expire(&contender).await;
    let before = fixture.snapshot(&contender.name).await;
    sleep(Duration::from_millis(200)).await;
    let lease = fixture.second().lease(&contender.name).await;
    assert_eq!(lease.occupancy(), Occupancy::Expired);
    assert_eq!(lease.remaining, Duration::ZERO);
    assert!(!lease.released, "nobody gave it back: {lease:?}");
    assert_eq!((lease.token, lease.terms), (grant.token, grant.terms));
    assert_eq!((lease.holder, lease.note), (contender.candidate, contender.note));
    fixture
        .assert_unchanged(&contender.name, &before, "time had passed")
        .await;
}

/// A candidate that asks with a short ttl does not get a lease that was taken with a long one.
pub async fn short_ttl_of_the_asker_does_not_shorten_the_lease(fixture: &Fixture) {
    let ada = fixture.contender("ada", &fixture.name());
    let bob = fixture.contender("bob", &ada.name).with_ttl(fixture.ttl_short());
    let grant = fixture.first().take(&ada).await;
    let patience = bob.ttl.duration() * 2;
    let began = Instant::now();
    while began.elapsed() < patience {
        let shown = fixture.second().be_refused(&bob).await;
        assert_eq!(shown.token, grant.token);
        sleep(LOOK_EVERY * 4).await;
    }
    fixture.first().extend(&ada.renew(grant.token)).await;
}

/// A candidate that asks with a long ttl gets a lease that was taken with a short one when that has run out.
pub async fn long_ttl_of_the_asker_does_not_lengthen_the_lease(fixture: &Fixture) {
    let ada = fixture
        .contender("ada", &fixture.name())
        .with_ttl(fixture.ttl_short());
    let bob = fixture
        .contender("bob", &ada.name)
        .with_ttl(fixture.traits().ttl_max);
    let old = fixture.first().take(&ada).await;
    let (new, _) = ask_until_granted(fixture, &bob, old.ttl.duration() + PATIENCE).await;
    assert!(new.token > old.token, "{new:?} after {old:?}");
}

/// The remaining time falls as time passes, and never rises by itself.
pub async fn remaining_time_falls(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    fixture.first().take(&contender).await;
    let [first, second] = [fixture.first(), fixture.second()];
    match fixture.traits().timekeeper {
        Timekeeper::Server | Timekeeper::Session => {
            assert_remaining_falls(fixture, &contender, [first, second, first, second]).await;
        }
        // Each observer times it for itself.
        Timekeeper::Observer => {
            for client in [first, second] {
                assert_remaining_falls(fixture, &contender, [client; 4]).await;
            }
        }
    }
}

async fn assert_remaining_falls(fixture: &Fixture, contender: &Contender, clients: [&Client; 4]) {
    let at_first = clients[0].lease(&contender.name).await.remaining;
    let mut last = Duration::MAX / 2;
    let mut read = Instant::now();
    for client in clients {
        sleep(Duration::from_millis(60)).await;
        let passed = read.elapsed();
        let remaining = client.lease(&contender.name).await.remaining;
        assert!(
            remaining <= (last + CLOCK_GRAIN + fixture.grain()).saturating_sub(passed),
            "{last:?} remained, {passed:?} passed, and now {remaining:?} remain"
        );
        (last, read) = (remaining, Instant::now());
    }
    // Where whole seconds are told it has not fallen yet.
    let began = Instant::now();
    while clients[0].lease(&contender.name).await.remaining >= at_first {
        assert!(began.elapsed() < PATIENCE, "{at_first:?} remain, and do not fall");
        sleep(LOOK_EVERY).await;
    }
}
