//! One process that wants one lease without end.

use super::witness::Witness;
use super::{Count, random};
use crate::asking::{giving_back, renewal, request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, FencingToken, LeaseStore, Renewed, Ttl};

/// How often one release is sent before the lease is left to expire.
const RELEASES_MAX: u32 = 3;

/// A term is held for at most so many parts of its ttl between two renewals.
const HOLD_PART: u32 = 3;

pub(super) struct Contender {
    asked: Acquire,
    ttl: Duration,
    store: Arc<dyn LeaseStore>,
    count: Arc<Count>,
    witness: Arc<Mutex<Witness>>,
}

impl Contender {
    pub(super) fn new(
        number: usize,
        lease: usize,
        ttl: Duration,
        store: &Arc<dyn LeaseStore>,
        count: &Arc<Count>,
        witness: &Arc<Mutex<Witness>>,
    ) -> Self {
        let granted = Ttl::try_from(ttl).expect("a campaign gives a valid ttl");
        Self {
            asked: request(&format!("job-{lease}"), &format!("contender-{number}"), granted),
            ttl,
            store: Arc::clone(store),
            count: Arc::clone(count),
            witness: Arc::clone(witness),
        }
    }

    fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants the lease, holds it for a while, gives it back, until there were enough terms.
    pub(super) async fn contend(mut self) {
        while !self.count.is_reached() {
            let sent = Instant::now();
            // As the engine: no request outlasts what it is good for.
            let answer = tokio::time::timeout(self.ttl, self.store.acquire(&self.asked)).await;
            match answer {
                Ok(Ok(Acquired::Granted(grant))) => {
                    let until = sent + self.ttl;
                    let begun = self.witness().begin(&self.asked, grant.token, grant.again, until);
                    if begun {
                        self.count.add_one();
                        self.hold(grant.token, until).await;
                    }
                    self.asked.attempt = self.asked.attempt.next();
                }
                Ok(Ok(Acquired::Held(lease))) => {
                    let wait = lease.remaining.min(Duration::from_millis(30 + random(60)));
                    tokio::time::sleep(wait).await;
                }
                Ok(Ok(Acquired::Superseded)) => self.asked.attempt = self.asked.attempt.next(),
                Ok(Err(_)) | Err(_) => {
                    self.witness().unknown += 1;
                    // Mostly the same attempt again; now and then it is given up for the next one.
                    if random(5) == 0 {
                        self.asked.attempt = self.asked.attempt.next();
                    }
                }
            }
        }
    }

    async fn hold(&self, token: FencingToken, mut until: Instant) {
        let longest = u64::try_from((self.ttl / HOLD_PART).as_millis()).unwrap_or(u64::MAX);
        for _ in 0..random(3) {
            tokio::time::sleep(Duration::from_millis(random(longest))).await;
            let (sent, renewals) = (Instant::now(), [renewal(&self.asked, token)]);
            let left = until.saturating_duration_since(sent);
            let answer = tokio::time::timeout(left, self.store.renew(&renewals)).await;
            match answer.map(|mut answers| answers.remove(0)) {
                Ok(Ok(Renewed::Extended { .. })) if Instant::now() < until => {
                    until = sent + self.ttl;
                    self.witness().extend(&self.asked, until);
                }
                Ok(Ok(Renewed::Lost(lease))) if Instant::now() < until => {
                    self.witness().lost(&self.asked, token, until, lease.as_deref());
                }
                _ => {}
            }
        }
        // Nothing is believed any more when the release is sent.
        self.witness().end(&self.asked);
        let releases = [giving_back(&self.asked, token)];
        for _ in 0..RELEASES_MAX {
            let answer = tokio::time::timeout(self.ttl, self.store.release(&releases)).await;
            if answer.is_ok_and(|mut answers| answers.remove(0).is_ok()) {
                return;
            }
        }
    }
}
