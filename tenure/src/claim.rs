//! Claiming a fence for a term in somebody's hands.

use crate::clock::now;
use crate::held::HeldTerm;
use crate::sync::{select, sleep};
use std::time::Duration;
use tenure_core::{Claimed, Fault, Fence, FenceError, Moment, ResourceName, Term};

/// How long after a claim that was in vain the next one is made, at first. Most fences have waited for
/// seconds by themselves.
const CLAIM_AGAIN_AFTER_FIRST: Duration = Duration::from_millis(250);

/// How long in the end: each try keeps a connection of the fence for seconds, and others claim by it, too.
const CLAIM_AGAIN_AFTER_MAX: Duration = Duration::from_secs(2);

/// How often a claim that goes on waiting is told of: its leader leads, and does not work.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How long a claim is made again after faults that the fence has no word for. What passes has gone by then;
/// else whoever claims would lead, and keep the work from everybody, for as long as the term is renewed.
const UNEXPLAINED_TIME_MAX: Duration = Duration::from_secs(30);

/// Claims, and again until the term is to end unless that is useless: the transaction of a leader that died
/// in it keeps the mark until the server hears of that, and a fence that fails over answers later.
pub(crate) async fn claim(
    held: &HeldTerm,
    fence: &dyn Fence,
    resource: &ResourceName,
) -> Result<Claimed, FenceError> {
    let term = Term::new(held.name().clone(), held.token());
    let mut waits = match fence.claim(resource, &term).await {
        Err(error) if !error.ends_a_claim() => Waits::new(&term, resource, error),
        decided => return decided,
    };
    loop {
        let again = async {
            sleep(waits.pause()).await;
            fence.claim(resource, &term).await
        };
        let decided = select! {
            biased;
            () = held.ending() => None,
            decided = again => Some(decided),
        };
        match decided {
            Some(Err(error)) if waits.is_worth_it_after(&error) => waits.goes_on(error),
            Some(decided) => return decided,
            None => return Err(waits.latest),
        }
    }
}

/// A claim that waits, and whom it has told.
struct Waits<'a> {
    term: &'a Term,
    resource: &'a ResourceName,
    latest: FenceError,
    tries: u32,
    told: Moment,
    /// Since when all its failures have been such that nobody knows whether they pass.
    unexplained: Option<Moment>,
}

impl<'a> Waits<'a> {
    fn new(term: &'a Term, resource: &'a ResourceName, error: FenceError) -> Self {
        let (lease, token) = (&term.lease, term.token.number());
        tracing::info!(target: "tenure", %lease, token, %resource, %error, "Claim waits");
        Self {
            term,
            resource,
            unexplained: is_unexplained(&error).then(now),
            latest: error,
            tries: 0,
            told: now(),
        }
    }

    fn pause(&self) -> Duration {
        let longer = CLAIM_AGAIN_AFTER_FIRST.saturating_mul(2_u32.saturating_pow(self.tries));
        longer.min(CLAIM_AGAIN_AFTER_MAX)
    }

    /// Whether to claim again after this answer to the last try.
    fn is_worth_it_after(&mut self, error: &FenceError) -> bool {
        if !is_unexplained(error) {
            self.unexplained = None;
            return !error.ends_a_claim();
        }
        let since = *self.unexplained.get_or_insert_with(now);
        now().since(since) < UNEXPLAINED_TIME_MAX
    }

    fn goes_on(&mut self, error: FenceError) {
        self.tries = self.tries.saturating_add(1);
        self.latest = error;
        if now().since(self.told) < TOLD_AGAIN_AFTER {
            return;
        }
        self.told = now();
        let (lease, token) = (&self.term.lease, self.term.token.number());
        let (resource, error) = (self.resource, &self.latest);
        tracing::warn!(target: "tenure", %lease, token, %resource, %error, "Claim waits still");
    }
}

fn is_unexplained(error: &FenceError) -> bool {
    matches!(error, FenceError::Store(error) if error.fault == Fault::Internal)
}
