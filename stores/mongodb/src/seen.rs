//! Records as the server has shown them last.

use crate::record::Shown;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::LeaseName;

/// Most records that are kept. Of one more, all are forgotten: that costs each of them the common statement
/// once.
const RECORDS_MAX: usize = 512;

/// What this store has taken or given back itself, and has reason to believe unchanged. It may be wrong:
/// others write too.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<HashMap<LeaseName, Shown>>);

impl Seen {
    /// Keeps a record in mind, unless others have put something of their own into it, which might be large.
    pub(crate) fn keep(&self, shown: Shown) {
        if !shown.is_ours_alone() {
            return;
        }
        let mut records = self.records();
        if records.len() >= RECORDS_MAX {
            records.clear();
        }
        records.insert(shown.record.lease.name.clone(), shown);
    }

    /// What was seen of this lease, for whoever changes it. It is not in mind any more.
    pub(crate) fn take(&self, name: &LeaseName) -> Option<Shown> {
        self.records().remove(name)
    }

    /// These are changed in another way.
    pub(crate) fn forget<'a>(&self, names: impl Iterator<Item = &'a LeaseName>) {
        let mut records = self.records();
        for name in names {
            if records.is_empty() {
                return;
            }
            records.remove(name);
        }
    }

    fn records(&self) -> MutexGuard<'_, HashMap<LeaseName, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
