use super::Wake;
use super::due::{Due, Dues};
use crate::{Attempt, LeaseName, Moment};
use std::collections::BTreeMap;

/// What is due when, of all seats, soonest first: so that a step looks only at what is due in it.
///
/// At one moment, the seat whose attempt is older comes first. No two seats have the same attempt; and
/// numbers are compared where they stand, while the texts of 100,000 names lie all over the memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Agenda([BTreeMap<(Moment, Attempt), LeaseName>; Due::ALL.len()]);

impl Agenda {
    /// What was due of `name` is due no more, unless it is in `after` too.
    pub(super) fn replace(&mut self, name: &LeaseName, before: Option<&Dues>, after: Option<&Dues>) {
        for due in Due::ALL {
            let old = before.and_then(|before| before.entry(due));
            let new = after.and_then(|after| after.entry(due));
            if old == new {
                continue;
            }
            let entries = &mut self.0[due as usize];
            if let Some(old) = old {
                entries.remove(&old);
            }
            if let Some(new) = new {
                let replaced = entries.insert(new, name.clone());
                debug_assert!(
                    replaced.is_none_or(|replaced| replaced == *name),
                    "one attempt, two seats"
                );
            }
        }
    }

    /// The seats of which this is due by `moment`, the longest due first.
    pub(super) fn by(&self, due: Due, moment: Moment) -> impl Iterator<Item = &LeaseName> {
        let entries = self.0[due as usize].iter();
        entries
            .take_while(move |((at, _), _)| *at <= moment)
            .map(|(_, name)| name)
    }

    /// The soonest that the engine must wake for, beside what waits for something else.
    pub(super) fn next_wake(&self, waits: impl Fn(Due) -> bool) -> Option<Wake> {
        let wake = |due: Due| {
            let why = due.wakes().filter(|_| !waits(due))?;
            let ((at, _), _) = self.0[due as usize].first_key_value()?;
            Some(Wake { at: *at, why })
        };
        Due::ALL.into_iter().filter_map(wake).min()
    }
}
