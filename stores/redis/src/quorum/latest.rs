//! What this store knows of the attempts that it was asked for: who is at them, what they left in members,
//! and what they were granted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::{Attempt, FencingToken, Incarnation, LeaseName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Acquisitions whose remains are let go of at once. What those beyond it leave runs out with its ttl.
const LETTING_GO_MAX: usize = 1_024;

/// So many acquisitions later it is forgotten what one was granted: a term whose end nobody told of must not
/// be remembered for ever. As many as one process holds locks.
const REMEMBERED_FOR: usize = 100_000;

/// Who asks for what.
pub(super) type Key = (LeaseName, Incarnation);

/// The acquisitions under way, those that left something, and those whose terms may be believed: of all
/// requests of a process, which asks through one store.
pub(super) struct Tries {
    latest: Mutex<Latest>,
    turns: Arc<Semaphore>,
}

/// The last acquisition of each.
#[derive(Default)]
pub(super) struct Latest {
    begun: u64,
    by_key: BTreeMap<Key, Last>,
    /// With as many, those of which only a grant is left are looked through again.
    look_at: usize,
}

/// The last acquisition of somebody.
pub(super) struct Last {
    number: u64,
    attempt: Attempt,
    /// The attempt is over, and what members have confirmed for it is given back.
    pub(super) is_over: bool,
    /// Those of the attempt that have not ended, by their numbers.
    under_way: BTreeSet<u64>,
    /// What the attempt was granted, until that is given back or was lost.
    granted: Option<FencingToken>,
    /// Once it has ended.
    letting_go: Option<LettingGo>,
}

/// Remains that are being let go of.
pub(super) struct LettingGo {
    pub(super) task: AbortHandle,
    pub(super) members: BTreeSet<usize>,
    pub(super) tokens: BTreeSet<FencingToken>,
}

/// What an acquisition finds when it begins.
pub(super) struct Begun {
    pub(super) number: u64,
    /// No other one of the same process was under way, or had left anything.
    pub(super) is_alone: bool,
    pub(super) is_over: bool,
    /// What the one before of the same attempt left.
    pub(super) left: Option<LettingGo>,
}

impl Default for Tries {
    fn default() -> Self {
        Self {
            latest: Mutex::default(),
            turns: Arc::new(Semaphore::new(LETTING_GO_MAX)),
        }
    }
}

impl Tries {
    pub(super) fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A term is given back, or was lost.
    pub(super) fn believe_no_longer(&self, name: &LeaseName, incarnation: Incarnation, token: FencingToken) {
        let key = (name.clone(), incarnation);
        let mut latest = self.lock();
        if let Some(last) = latest.by_key.get_mut(&key) {
            last.granted.take_if(|granted| *granted == token);
        }
        latest.tidy(&key);
    }

    /// A turn to let go of something, if not too many do.
    pub(super) fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).try_acquire_owned().ok()
    }
}

impl Latest {
    /// One of this attempt begins.
    pub(super) fn begin(&mut self, key: &Key, attempt: Attempt) -> Begun {
        self.begun += 1;
        let number = self.begun;
        let before = self.by_key.get(key);
        let is_alone = before.is_none_or(|before| before.under_way.is_empty() && before.letting_go.is_none());
        // Whoever was not told that would be granted what is given back just now.
        let is_over = before.is_some_and(|before| before.attempt == attempt && before.is_over);
        // One that is late changes nothing of what is known of a later attempt.
        if is_over || before.is_some_and(|before| before.attempt > attempt) {
            return Begun {
                number,
                is_alone,
                is_over,
                left: None,
            };
        }
        let before = self.by_key.remove(key).filter(|before| before.attempt == attempt);
        let mut last = before.unwrap_or_else(|| Last {
            number,
            attempt,
            is_over: false,
            under_way: BTreeSet::new(),
            granted: None,
            letting_go: None,
        });
        last.number = number;
        last.under_way.insert(number);
        let left = last.letting_go.take();
        self.by_key.insert(key.clone(), last);
        self.forget_early();
        Begun {
            number,
            is_alone,
            is_over,
            left,
        }
    }

    /// The last acquisition of somebody, if it is this one, and nobody else has been granted a token of its
    /// attempt, or may be.
    pub(super) fn sole(&mut self, key: &Key, number: u64) -> Option<&mut Last> {
        let last = self.by_key.get_mut(key)?;
        let is_only = last.under_way.iter().eq([&number]);
        (last.number == number && is_only && last.granted.is_none()).then_some(last)
    }

    pub(super) fn is_granted(&mut self, key: &Key, attempt: Attempt, token: FencingToken) {
        if let Some(last) = self.by_key.get_mut(key)
            && last.attempt == attempt
        {
            last.granted = Some(token);
        }
    }

    /// This one has ended, and may have left something.
    pub(super) fn end(&mut self, key: &Key, number: u64, left: Option<LettingGo>, is_given_back: bool) {
        if let Some(last) = self.by_key.get_mut(key) {
            last.under_way.remove(&number);
            // One that was given up may be dropped only after the next has begun, which does not know of it
            // then.
            if last.number == number {
                last.is_over |= is_given_back;
                last.letting_go = left;
            }
        }
        self.tidy(key);
    }

    /// Nothing is left of this one.
    pub(super) fn has_let_go(&mut self, key: &Key, number: u64) {
        if let Some(last) = self.by_key.get_mut(key)
            && last.number == number
        {
            last.letting_go = None;
        }
        self.tidy(key);
    }

    fn tidy(&mut self, key: &Key) {
        let is_nothing = |last: &Last| last.has_ended() && last.granted.is_none();
        if self.by_key.get(key).is_some_and(is_nothing) {
            self.by_key.remove(key);
        }
    }

    fn forget_early(&mut self) {
        if self.by_key.len() < self.look_at.max(REMEMBERED_FOR) {
            return;
        }
        let early = self.begun.saturating_sub(REMEMBERED_FOR as u64);
        self.by_key
            .retain(|_, last| last.number > early || !last.has_ended());
        self.look_at = self.by_key.len() * 2;
    }
}

impl Last {
    /// Whether it does nothing to any member any more.
    fn has_ended(&self) -> bool {
        self.under_way.is_empty() && self.letting_go.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::{Latest, REMEMBERED_FOR};
    use tenure_core::{Attempt, FencingToken, Incarnation, LeaseName};

    #[test]
    fn grants_whose_end_nobody_tells_of_are_forgotten_in_time() {
        let mut latest = Latest::default();
        for number in 0..4 * REMEMBERED_FOR {
            let key = (
                LeaseName::new(format!("order-{number}")).unwrap(),
                Incarnation::from_bits(1),
            );
            let begun = latest.begin(&key, Attempt::FIRST);
            latest.is_granted(&key, Attempt::FIRST, FencingToken::new(7).unwrap());
            latest.end(&key, begun.number, None, false);
            assert!(latest.by_key.len() <= 2 * REMEMBERED_FOR, "{number}");
            assert_eq!(latest.by_key[&key].granted, FencingToken::new(7).ok());
        }
    }
}
