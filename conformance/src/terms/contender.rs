//! One process that wants one lease without end.

use super::witness::{Arrived, Witness};
use super::{Count, random, random_place, random_time};
use crate::asking::{giving_back, renewal, request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Acquired, Certainty, FencingToken, LeaseStore, Released, Renewed, Ttl};

/// How often one release is sent before the lease is left to expire.
const RELEASES_MAX: u32 = 3;

/// A term is held for at most so many parts of its ttl between two renewals.
const HOLD_PART: u32 = 3;

/// One term in so many is left to expire.
const EXPIRES_ONE_IN: u64 = 8;

/// So many terms that are over are known.
const FORMER_MAX: usize = 2;

/// After an error for at most so long nothing is asked: a server that is down refuses at once.
const PAUSE_MAX: Duration = Duration::from_millis(40);

pub(super) struct Contender {
    asked: Acquire,
    /// The highest token that anybody had seen when what may have been granted of this attempt was sent
    /// first.
    above: Option<FencingToken>,
    /// Whether a request of this attempt may have been granted unheard.
    is_unsure: bool,
    /// The tokens of its last terms, which are over, the last one first: what is asked by them must change
    /// nothing.
    former: Vec<FencingToken>,
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
            above: None,
            is_unsure: false,
            former: Vec::new(),
            ttl,
            store: Arc::clone(store),
            count: Arc::clone(count),
            witness: Arc::clone(witness),
        }
    }

    fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on to the next attempt.
    fn give_up_attempt(&mut self) {
        self.asked.attempt = self.asked.attempt.next();
        self.is_unsure = false;
    }

    /// Wants the lease, holds it for a while, gives it back, until there were enough terms, and one of this
    /// lease after all harm.
    pub(super) async fn contend(mut self) {
        while !self.witness().has_led_since() {
            if !self.is_unsure {
                let highest = self.witness().highest();
                self.above = highest;
            }
            let sent = Instant::now();
            // As the engine: no request outlasts what it is good for.
            let answer = tokio::time::timeout(self.ttl, self.store.acquire(&self.asked)).await;
            match answer {
                Ok(Ok(Acquired::Granted(grant))) => {
                    let arrived = Arrived {
                        token: grant.token,
                        again: grant.again,
                        above: self.above,
                        ends: sent + self.ttl,
                    };
                    let begun = self.witness().begin(&self.asked, arrived);
                    if begun {
                        self.count.add_one();
                        self.hold(grant.token, arrived.ends).await;
                        self.former.insert(0, grant.token);
                        self.former.truncate(FORMER_MAX);
                    }
                    self.give_up_attempt();
                }
                Ok(Ok(Acquired::Held(lease))) => {
                    let wait = lease.remaining.min(Duration::from_millis(30 + random(60)));
                    tokio::time::sleep(wait).await;
                }
                Ok(Ok(Acquired::Superseded)) => self.give_up_attempt(),
                Ok(Err(_)) | Err(_) => {
                    let is_unknown = match &answer {
                        Ok(Err(error)) => error.certainty == Certainty::Unknown,
                        _ => true,
                    };
                    self.witness().unknown += u64::from(is_unknown);
                    self.is_unsure |= is_unknown;
                    tokio::time::sleep(random_time(PAUSE_MAX)).await;
                    // Mostly the same attempt again; now and then it is given up for the next one.
                    if random(5) == 0 {
                        self.give_up_attempt();
                    }
                }
            }
        }
    }

    async fn hold(&self, token: FencingToken, mut until: Instant) {
        for _ in 0..random(3) {
            tokio::time::sleep(random_time(self.ttl / HOLD_PART)).await;
            self.give_back_former(until).await;
            let tokens = self.batch(token);
            let renewals: Vec<_> = tokens.iter().map(|token| renewal(&self.asked, *token)).collect();
            let sent = Instant::now();
            let left = until.saturating_duration_since(sent);
            let answer = tokio::time::timeout(left, self.store.renew(&renewals)).await;
            if let (Ok([_, Ok(Renewed::Extended { .. })]), [_, former]) = (answer.as_deref(), &tokens[..]) {
                self.witness().revived(&self.asked, *former);
            }
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
        if random(EXPIRES_ONE_IN) == 0 {
            // Believes to the last moment, renewed or not, and gives nothing back: without this no term would
            // outlive the deadline that it began with.
            tokio::time::sleep_until(until.into()).await;
            self.witness().end(&self.asked);
            return;
        }
        // Nothing is believed any more when the release is sent.
        self.witness().end(&self.asked);
        let tokens = self.batch(token);
        let releases: Vec<_> = tokens
            .iter()
            .map(|token| giving_back(&self.asked, *token))
            .collect();
        for _ in 0..RELEASES_MAX {
            let answer = tokio::time::timeout(self.ttl, self.store.release(&releases)).await;
            if answer.is_ok_and(|mut answers| answers.remove(0).is_ok()) {
                return;
            }
        }
    }

    /// Half of the time: terms that are over are given back, one or two in one batch, while the present one
    /// is held. The renewal after it shows whether that has ended the present one.
    async fn give_back_former(&self, until: Instant) {
        let count = self.former.len().min(random_place(2 * FORMER_MAX));
        let Some(former) = self.former.get(..count).filter(|former| !former.is_empty()) else {
            return;
        };
        let releases: Vec<_> = former
            .iter()
            .map(|token| giving_back(&self.asked, *token))
            .collect();
        let left = until.saturating_duration_since(Instant::now());
        let answer = tokio::time::timeout(left, self.store.release(&releases)).await;
        for (token, answer) in former.iter().zip(answer.unwrap_or_default()) {
            if answer == Ok(Released::Vacated) {
                self.witness().vacated(&self.asked, *token);
            }
        }
    }

    /// This token, and half of the time that of the term before: stores have ways of their own for several
    /// requests at once.
    fn batch(&self, token: FencingToken) -> Vec<FencingToken> {
        let former = self.former.first().filter(|_| random(2) == 0);
        [token].into_iter().chain(former.copied()).collect()
    }
}
