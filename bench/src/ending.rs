//! When a lease ends unless it is renewed again, as exactly as an onlooker can tell on every store.

use std::time::{Duration, Instant};
use tenure::{LeaseName, SharedStore};

/// How often the lease is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a holder is given until one of its renewals is seen.
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(60);

/// Looks at a lease for as long as its holder may renew it.
///
/// What a store tells remains is not always exact: a server of sessions tells whole seconds, and an observer
/// counts from when it saw the record first. But on all of them more remains than at the look before only
/// where it was renewed since that was sent; where seconds are told, the ttl and the renewals must be such
/// that less remains before each.
pub struct Onlooker<'a> {
    store: &'a SharedStore,
    name: &'a LeaseName,
    /// When the last look was sent, and what it was told remains.
    last: Option<(Instant, Duration)>,
    /// The earliest moment at which the lease may end; nothing until a renewal was seen.
    earliest_end: Option<Instant>,
}

impl<'a> Onlooker<'a> {
    pub fn new(store: &'a SharedStore, name: &'a LeaseName) -> Self {
        Self {
            store,
            name,
            last: None,
            earliest_end: None,
        }
    }

    /// Looks for this long at least, and until a renewal was seen.
    pub async fn look_for(&mut self, long: Duration) {
        let began = Instant::now();
        while began.elapsed() < long || self.earliest_end.is_none() {
            assert!(began.elapsed() < RENEWAL_TIME_MAX, "the holder does not renew");
            self.look().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks once.
    pub async fn look(&mut self) {
        let sent = Instant::now();
        let lease = self.store.get(self.name).await.unwrap().unwrap();
        if let Some((sent_before, remaining_before)) = self.last
            && lease.remaining > remaining_before
        {
            self.earliest_end = Some(sent_before + lease.ttl.duration());
        }
        self.last = Some((sent, lease.remaining));
    }

    /// The earliest moment at which the lease may end, by all that was seen.
    pub fn earliest_end(&self) -> Instant {
        self.earliest_end.expect("a renewal was seen")
    }
}
