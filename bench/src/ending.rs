//! When a lease ends unless it is renewed again, as exactly as an onlooker can tell on every store.

use std::time::{Duration, Instant};
use tenure::core::Timekeeper;
use tenure::{LeaseName, SharedStore};

/// How often the lease is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a holder is given until one of its renewals is seen.
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(60);

/// Looks at a lease for as long as its holder may renew it.
///
/// What a store tells remains is not always exact: a server of sessions tells whole seconds, and an observer counts from when
/// it saw the record first. The moment of a renewal is seen on all of them: what is told then cannot be of the term as it was.
pub struct Onlooker<'a> {
    store: &'a SharedStore,
    name: &'a LeaseName,
    /// By how much less may remain than is told.
    grain: Duration,
    /// When the last two looks were sent, the older one first.
    sent: [Instant; 2],
    /// The latest end that agrees with all looks since the last renewal.
    latest: Option<Instant>,
    /// How long before that end the true one may be; nothing until a renewal was seen.
    blur: Option<Duration>,
}

impl<'a> Onlooker<'a> {
    pub fn new(store: &'a SharedStore, name: &'a LeaseName) -> Self {
        let grain = match store.traits().timekeeper {
            Timekeeper::Session => Duration::from_secs(1),
            Timekeeper::Server | Timekeeper::Observer => Duration::from_millis(1),
        };
        let sent = [Instant::now(); 2];
        Self {
            store,
            name,
            grain,
            sent,
            latest: None,
            blur: None,
        }
    }

    /// Looks for this long at least, and until a renewal was seen.
    pub async fn look_for(&mut self, long: Duration) {
        let began = Instant::now();
        while began.elapsed() < long || self.blur.is_none() {
            assert!(began.elapsed() < RENEWAL_TIME_MAX, "the holder does not renew");
            self.look().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks once.
    pub async fn look(&mut self) {
        let sent = Instant::now();
        let lease = self.store.get(self.name).await.unwrap().unwrap();
        let answered = Instant::now();
        let earliest = sent + lease.remaining.saturating_sub(self.grain);
        let latest = answered + lease.remaining;
        match self.latest {
            Some(known) if earliest <= known => self.latest = Some(known.min(latest)),
            // Too late for the term as it was: it was renewed since, or when the last look was under way.
            Some(_) => {
                self.latest = Some(latest);
                self.blur = Some(answered - self.sent[0] + Duration::from_millis(1));
            }
            None => self.latest = Some(latest),
        }
        self.sent = [self.sent[1], sent];
    }

    /// The earliest moment at which the lease may end, by all that was seen.
    pub fn earliest_end(&self) -> Instant {
        let seen = "a renewal was seen";
        self.latest.expect(seen) - self.blur.expect(seen)
    }
}
