//! Whether others ask for leases, too, and what this store had last.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::{Acquire, Attempt, FencingToken, Incarnation, LeaseName};

/// For how long whoever was met is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// What this store knows of them.
#[derive(Default)]
pub(super) struct Rivals {
    /// When it has met another candidate last, for whatever lease, or another request of its own attempt.
    met: Mutex<Option<Instant>>,
    /// What it was granted last, until that is over.
    held: Mutex<Option<Term>>,
    /// What it gave back last, until it is asked for again.
    given_back: Mutex<Option<Term>>,
}

/// A term that this store was granted.
#[derive(Clone)]
pub(super) struct Term {
    pub(super) name: LeaseName,
    pub(super) incarnation: Incarnation,
    pub(super) attempt: Attempt,
    pub(super) token: FencingToken,
    pub(super) terms: u64,
}

/// In which order the members are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// All at once, which takes the least time. Of several who ask at the same time none may get a majority.
    AllAtOnce,
    /// One member before the others: of those who ask at once it lets one through, and they do not split the
    /// rest.
    OneFirst,
}

impl Rivals {
    /// Another has what was asked for, or asks for it.
    pub(super) fn are_met(&self) {
        *lock(&self.met) = Some(Instant::now());
    }

    /// How to ask now.
    pub(super) fn order(&self) -> Order {
        order(*lock(&self.met), Instant::now())
    }

    /// How to ask for this lease at first: where one process hands it on within itself, every other candidate
    /// is told that it is held, and asks in no member's way.
    pub(super) fn order_at_first(&self, name: &LeaseName) -> Order {
        match lock(&self.held).as_ref().is_some_and(|held| held.name == *name) {
            true => Order::AllAtOnce,
            false => self.order(),
        }
    }

    /// It was granted.
    pub(super) fn is_held(&self, term: Term) {
        lock(&self.given_back).take_if(|before| before.name == term.name);
        *lock(&self.held) = Some(term);
    }

    /// It is given back, or was lost: what was known of it.
    pub(super) fn is_not_held(&self, name: &LeaseName) -> Option<Term> {
        lock(&self.held).take_if(|held| held.name == *name)
    }

    /// A majority has it back.
    pub(super) fn is_given_back(&self, term: Term) {
        *lock(&self.given_back) = Some(term);
    }

    /// The term before the one that is asked for, if for all that is known it is this process's own: it gave
    /// that back, or still holds it and hands it on. It is told once: what becomes of the next term may be
    /// known to nobody.
    pub(super) fn own_before(&self, request: &Acquire) -> Option<Term> {
        let is_before = |term: &mut Term| {
            (&term.name, term.incarnation) == (&request.name, request.candidate.incarnation)
                && term.attempt < request.attempt
        };
        lock(&self.given_back)
            .take_if(is_before)
            .or_else(|| lock(&self.held).take_if(is_before))
    }
}

fn order(met: Option<Instant>, now: Instant) -> Order {
    match met.is_some_and(|met| now.saturating_duration_since(met) < REMEMBERED) {
        true => Order::OneFirst,
        false => Order::AllAtOnce,
    }
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Order, REMEMBERED, Rivals, Term, order};
    use std::time::{Duration, Instant};
    use tenure_core::{
        Acquire, Attempt, Candidate, CandidateId, FencingToken, Incarnation, LeaseName, Note, Ttl,
    };

    fn term(name: &LeaseName) -> Term {
        Term {
            name: name.clone(),
            incarnation: Incarnation::from_bits(1),
            attempt: Attempt::FIRST,
            token: FencingToken::new(7).unwrap(),
            terms: 3,
        }
    }

    /// The attempt after that term's.
    fn next(name: &LeaseName, incarnation: u128) -> Acquire {
        Acquire {
            name: name.clone(),
            candidate: Candidate {
                id: CandidateId::new("a").unwrap(),
                incarnation: Incarnation::from_bits(incarnation),
            },
            attempt: Attempt::FIRST.next(),
            ttl: Ttl::MIN,
            note: Note::default(),
        }
    }

    #[test]
    fn what_was_given_back_or_is_handed_on_is_told_once_and_to_who_had_it() {
        let (ours, other) = (LeaseName::new("ours").unwrap(), LeaseName::new("other").unwrap());
        for keep in [Rivals::is_given_back, Rivals::is_held] {
            let rivals = Rivals::default();
            keep(&rivals, term(&ours));
            assert!(rivals.own_before(&next(&other, 1)).is_none());
            assert!(rivals.own_before(&next(&ours, 2)).is_none(), "another process");
            let again = Acquire {
                attempt: Attempt::FIRST,
                ..next(&ours, 1)
            };
            assert!(rivals.own_before(&again).is_none(), "it asks for that very term");
            assert!(rivals.own_before(&next(&ours, 1)).is_some());
            assert!(rivals.own_before(&next(&ours, 1)).is_none());
        }
        let rivals = Rivals::default();
        rivals.is_given_back(term(&ours));
        rivals.is_held(Term {
            incarnation: Incarnation::from_bits(2),
            ..term(&ours)
        });
        assert!(
            rivals.own_before(&next(&ours, 1)).is_none(),
            "another term was there since"
        );
    }

    #[test]
    fn what_is_handed_on_is_asked_of_all_at_once_until_it_is_over() {
        let (ours, other) = (LeaseName::new("ours").unwrap(), LeaseName::new("other").unwrap());
        let rivals = Rivals::default();
        rivals.are_met();
        assert_eq!(rivals.order_at_first(&ours), Order::OneFirst);
        rivals.is_held(term(&ours));
        assert_eq!(rivals.order_at_first(&ours), Order::AllAtOnce);
        assert_eq!(rivals.order_at_first(&other), Order::OneFirst);
        assert_eq!(rivals.order(), Order::OneFirst, "if that was in vain");
        rivals.is_not_held(&other);
        assert_eq!(rivals.order_at_first(&ours), Order::AllAtOnce);
        rivals.is_not_held(&ours);
        assert_eq!(rivals.order_at_first(&ours), Order::OneFirst);
    }

    #[test]
    fn whoever_was_met_is_remembered_for_a_while() {
        let met = Instant::now();
        assert_eq!(order(None, met), Order::AllAtOnce);
        let late = REMEMBERED - Duration::from_millis(1);
        assert_eq!(order(Some(met), met + late), Order::OneFirst);
        assert_eq!(order(Some(met), met + REMEMBERED), Order::AllAtOnce);
    }
}
