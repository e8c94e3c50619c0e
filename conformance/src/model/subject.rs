use super::records::Slot;
use super::{ModelClock, ModelStore};
use crate::{Corruption, Hooked, Subject};
use std::sync::Arc;
use tenure_core::{Answer, FencingToken, LeaseName, LeasePurge, LeaseStore, Note};

/// The sound model as a subject of the suite, and the example of how one is written.
pub struct ModelSubject {
    storage: ModelStore,
}

impl ModelSubject {
    /// An empty model on a running clock.
    #[must_use]
    pub fn new() -> Self {
        Self::over(ModelStore::new(ModelClock::running()))
    }

    /// The subject whose clients are clones of `storage`.
    #[must_use]
    pub fn over(storage: ModelStore) -> Self {
        Self { storage }
    }
}

impl Default for ModelSubject {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for ModelSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::new(self.storage.clone())
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::new(self.storage.clone())
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async { Hooked::Done(self.storage.clock().now_ms()) })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        let raw = self
            .storage
            .step(|records, _| records.slots.get(name).map(|slot| format!("{slot:?}")));
        Box::pin(async { Hooked::Done(raw) })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        self.storage.step(|records, _| {
            let slot = records
                .slots
                .get_mut(name)
                .expect("a case damages a record that exists");
            *slot = damaged(slot, corruption);
        });
        Box::pin(async { Hooked::Done(()) })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        self.storage
            .step(|records, _| records.strays.insert(key.to_owned()));
        Box::pin(async { Hooked::Done(()) })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        self.storage.step(|records, _| records.purge(name));
        Box::pin(async { Hooked::Done(()) })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::new(self.storage.clone()))
    }
}

fn damaged(slot: &Slot, corruption: Corruption) -> Slot {
    match (slot, corruption) {
        (Slot::Own(record), Corruption::LastToken) => {
            let mut record = record.clone();
            record.token = FencingToken::MAX;
            Slot::Own(record)
        }
        (Slot::Own(record), Corruption::LongNote) => {
            let mut record = record.clone();
            record.note = Note::beginning_of(&Corruption::long_note());
            Slot::Own(record)
        }
        (Slot::Own(record), Corruption::ExpiryFarOff) => {
            let mut record = record.clone();
            record.expires_ms = u64::try_from(Corruption::FAR_OFF_MS).expect("a time after 1970");
            Slot::Own(record)
        }
        _ => Slot::Foreign(format!("{corruption:?} of {slot:?}")),
    }
}
