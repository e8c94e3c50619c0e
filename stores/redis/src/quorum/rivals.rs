//! Whether others ask for leases, too.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For how long whoever was met is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// When this store has met another candidate last, for whatever lease, or another request of its own attempt.
#[derive(Default)]
pub(super) struct Rivals(Mutex<Option<Instant>>);

/// In which order the members are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// All at once, which takes the least time. Of several who ask at the same time none may get a majority.
    AllAtOnce,
    /// One member before the others: of those who ask at once it lets one through, and they do not split the rest.
    OneFirst,
}

impl Rivals {
    /// Another has what was asked for, or asks for it.
    pub(super) fn are_met(&self) {
        *lock(&self.0) = Some(Instant::now());
    }

    /// How to ask now.
    pub(super) fn order(&self) -> Order {
        order(*lock(&self.0), Instant::now())
    }
}

fn order(met: Option<Instant>, now: Instant) -> Order {
    match met.is_some_and(|met| now.saturating_duration_since(met) < REMEMBERED) {
        true => Order::OneFirst,
        false => Order::AllAtOnce,
    }
}

fn lock(met: &Mutex<Option<Instant>>) -> MutexGuard<'_, Option<Instant>> {
    met.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Order, REMEMBERED, order};
    use std::time::{Duration, Instant};

    #[test]
    fn whoever_was_met_is_remembered_for_a_while() {
        let met = Instant::now();
        assert_eq!(order(None, met), Order::AllAtOnce);
        let late = REMEMBERED - Duration::from_millis(1);
        assert_eq!(order(Some(met), met + late), Order::OneFirst);
        assert_eq!(order(Some(met), met + REMEMBERED), Order::AllAtOnce);
    }
}
