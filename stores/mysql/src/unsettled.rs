//! Leases that the short way is not likely to settle.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::LeaseName;

/// Most names that are kept. Of one more, all are forgotten: that costs each of them one more look by the
/// short way.
const NAMES_MAX: usize = 4_096;

/// The leases of which this store has asked something that it does not know to be done: somebody else holds
/// them, or the answer was an error, or nobody has waited for it. The procedure is asked at once. It finds a
/// lease held without a lock: of many who wait, each look by the short way would keep the row from a renewal
/// for a moment. And whoever asks once more for what was done before has to wait for one answer and not for
/// two.
#[derive(Default)]
pub(crate) struct Unsettled(Mutex<HashSet<LeaseName>>);

impl Unsettled {
    /// Whether the short way may be asked of this lease. From now on it is not, until it is
    /// [settled](Self::settle).
    pub(crate) fn begin(&self, name: &LeaseName) -> bool {
        let mut names = self.names();
        if names.contains(name) {
            return false;
        }
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        names.insert(name.clone())
    }

    /// The lease was taken or given back.
    pub(crate) fn settle(&self, name: &LeaseName) {
        self.names().remove(name);
    }

    fn names(&self) -> MutexGuard<'_, HashSet<LeaseName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES_MAX, Unsettled};
    use tenure_core::LeaseName;

    #[test]
    fn so_many_names_are_kept_and_no_more() {
        let unsettled = Unsettled::default();
        let name = |number: usize| LeaseName::new(format!("job-{number}")).unwrap();
        for number in 0..NAMES_MAX {
            assert!(unsettled.begin(&name(number)));
            assert!(!unsettled.begin(&name(0)));
        }
        unsettled.settle(&name(0));
        assert!(unsettled.begin(&name(0)));
        assert!(unsettled.begin(&name(NAMES_MAX)), "it is new");
        assert_eq!(unsettled.names().len(), 1);
    }
}
