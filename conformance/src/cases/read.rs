//! Reading one lease: what it says, when, and that it changes nothing.

use crate::Fixture;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What whole milliseconds and a clock that is being slewed may add to or take from a duration.
const CLOCK_GRAIN: Duration = Duration::from_millis(20);

/// A name that nobody used has no record, and reading makes none.
pub async fn missing_lease_is_none(fixture: &Fixture) {
    let name = fixture.name();
    for client in [fixture.first(), fixture.second(), fixture.first()] {
        assert_eq!(client.get(&name).await, None);
    }
}

/// Reading leaves the record byte for byte as it is.
pub async fn reading_writes_nothing(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    fixture.first().take(&contender).await;
    let before = fixture.snapshot(&contender.name).await;
    for client in [fixture.first(), fixture.second()] {
        let _lease = client.lease(&contender.name).await;
        let _page = client.list(fixture.unique(), 10).await;
    }
    fixture
        .assert_unchanged(&contender.name, &before, "reading")
        .await;
}

/// What one client wrote, the other reads at once: no replica that lags, no cache.
pub async fn reads_see_the_latest_write(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    for attempt in 1..=15 {
        let current = contender.at_attempt(attempt);
        let (writer, reader) = if attempt % 2 == 0 {
            (fixture.first(), fixture.second())
        } else {
            (fixture.second(), fixture.first())
        };
        let grant = writer.take(&current).await;
        let held = reader.lease(&contender.name).await;
        assert_eq!((held.token, held.released), (grant.token, false));
        writer.vacate(&current.release(grant.token)).await;
        let vacant = reader.lease(&contender.name).await;
        assert_eq!((vacant.token, vacant.released), (grant.token, true));
    }
}

/// The record says how long ago the term began, by the store's clock.
pub async fn time_since_the_term_began_is_told(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let sent = Instant::now();
    let grant = fixture.first().take(&contender).await;
    fixture.both_look(&contender.name).await;
    let granted = Instant::now();
    sleep(Duration::from_millis(120)).await;
    fixture.first().extend(&contender.renew(grant.token)).await;
    let at_least = granted.elapsed();
    let lease = fixture.second().lease(&contender.name).await;
    let at_most = sent.elapsed();
    assert!(
        lease.held_for + CLOCK_GRAIN >= at_least && lease.held_for <= at_most + CLOCK_GRAIN,
        "the term began {at_least:?} to {at_most:?} ago, not {:?}",
        lease.held_for
    );
}

/// The record says how long ago the lease was renewed: without a renewal, how long ago the term began.
pub async fn time_since_the_last_renewal_is_told(fixture: &Fixture) {
    let contender = fixture.contender("ada", &fixture.name());
    let taken = Instant::now();
    let grant = fixture.first().take(&contender).await;
    fixture.both_look(&contender.name).await;
    sleep(Duration::from_millis(120)).await;
    let lease = fixture.second().lease(&contender.name).await;
    let grain = CLOCK_GRAIN + fixture.grain();
    assert!(
        lease.renewed_ago + grain >= Duration::from_millis(120)
            && lease.renewed_ago <= taken.elapsed() + grain,
        "without a renewal it is the time since the term began: {lease:?}"
    );
    let sent = Instant::now();
    fixture.first().extend(&contender.renew(grant.token)).await;
    let lease = fixture.second().lease(&contender.name).await;
    let at_most = sent.elapsed();
    assert!(
        lease.renewed_ago <= at_most + grain,
        "it was renewed at most {at_most:?} ago, not {:?}",
        lease.renewed_ago
    );
    assert!(lease.renewed_ago <= lease.held_for, "{lease:?}");
}
