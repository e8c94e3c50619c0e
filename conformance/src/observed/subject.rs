use super::clock::ObserverClock;
use super::records::SwapSlot;
use super::store::{RevisionKind, SwapModel, TokenFloor};
use crate::model::ModelClock;
use crate::{Corruption, Hooked, Subject};
use std::sync::Arc;
use tenure_core::{Answer, FencingToken, LeaseName, LeasePurge, LeaseStore, Note, ObservedStore};

/// The adaptor over a store in memory, as a subject of the suite: the first client's clock is too slow, the
/// second's too fast, as far as the adaptor allows.
pub struct ObservedSubject {
    storage: SwapModel,
    rate_error_ppm: u32,
}

impl ObservedSubject {
    /// Over a store that numbers its revisions and can tell the time; clocks are wrong by 500 ppm.
    #[must_use]
    pub fn numbered() -> Self {
        Self::over(SwapModel::new(
            RevisionKind::Number,
            TokenFloor::Clock(ModelClock::running()),
        ))
    }

    /// Over a store whose revisions are hashes, and that cannot tell the time; clocks are wrong by 500 ppm.
    #[must_use]
    pub fn hashed() -> Self {
        Self::over(SwapModel::new(RevisionKind::ContentHash, TokenFloor::Writes))
    }

    /// Over this store; clocks are wrong by 500 ppm.
    #[must_use]
    pub fn over(storage: SwapModel) -> Self {
        Self {
            storage,
            rate_error_ppm: 500,
        }
    }

    /// The same with clocks that are wrong by this much, in parts per million: at most 100,000.
    #[must_use]
    pub fn with_rate_error(self, rate_error_ppm: u32) -> Self {
        Self {
            rate_error_ppm,
            ..self
        }
    }

    pub(super) fn storage(&self) -> &SwapModel {
        &self.storage
    }

    fn observer(&self, fast_by_ppm: i32) -> Arc<dyn LeaseStore> {
        let clock = ObserverClock::running(fast_by_ppm);
        Arc::new(ObservedStore::new(
            self.storage.clone(),
            clock,
            self.rate_error_ppm,
        ))
    }
}

impl Subject for ObservedSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        self.observer(-self.rate_error_ppm.cast_signed())
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        self.observer(self.rate_error_ppm.cast_signed())
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        Box::pin(async {
            match self.storage.floor() {
                TokenFloor::Clock(clock) => Hooked::Done(clock.now_ms()),
                TokenFloor::Writes => Hooked::Unsupported("the store has no clock, only a count of writes"),
            }
        })
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        let raw = self
            .storage
            .step(|records| records.slots.get(name).map(|slot| format!("{slot:?}")));
        Box::pin(async { Hooked::Done(raw) })
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        if matches!(
            corruption,
            Corruption::ExpiryIsText | Corruption::NoExpiry | Corruption::ExpiryFarOff
        ) {
            return Box::pin(async { Hooked::Unsupported("no record here has an expiry") });
        }
        self.storage.step(|records| {
            let slot = records
                .slots
                .get(name)
                .expect("a case damages a record that exists");
            match (slot.clone(), corruption) {
                (SwapSlot::Own(version), Corruption::LastToken) => {
                    let mut entry = version.entry;
                    entry.token = FencingToken::MAX;
                    drop(records.write(name, &entry));
                }
                (SwapSlot::Own(version), Corruption::LongNote) => {
                    let mut entry = version.entry;
                    entry.note = Note::beginning_of(&Corruption::long_note());
                    drop(records.write(name, &entry));
                }
                (slot, _) => {
                    let text = format!("{corruption:?} of {slot:?}");
                    drop(records.slots.insert(name.clone(), SwapSlot::Foreign(text)));
                }
            }
        });
        self.storage.tell_gap();
        Box::pin(async { Hooked::Done(()) })
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        self.storage.step(|records| records.strays.insert(key.to_owned()));
        Box::pin(async { Hooked::Done(()) })
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        self.storage.step(|records| records.purge(name));
        Box::pin(async { Hooked::Done(()) })
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Unsupported("the adaptor has no clock that spans observers; a store below it may")
    }
}
