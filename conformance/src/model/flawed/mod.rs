//! The model with one planted defect. Each flaw stands beside the sound rule that it breaks, so that the
//! sound model stays free of them.

mod acquire;
mod clean_up;
mod read;
mod steps;
mod store;
mod term;
mod watch;

use super::defect::Defect;
use super::{ModelClock, ModelStore, ModelSubject};
use crate::{Corruption, Hooked, Subject};
use std::sync::Arc;
use store::FlawedStore;
use tenure_core::{Answer, LeaseName, LeasePurge, LeaseStore};

/// A model with a defect, as a subject of the suite.
pub struct FlawedSubject {
    sound: ModelSubject,
    first: Arc<FlawedStore>,
    second: Arc<FlawedStore>,
    defect: Defect,
}

impl FlawedSubject {
    /// An empty model on a running clock, with this defect.
    #[must_use]
    pub fn new(defect: Defect) -> Self {
        let storage = ModelStore::new(ModelClock::running());
        let first = FlawedStore::new(storage.clone(), defect);
        let second = first.another_client();
        Self {
            sound: ModelSubject::over(storage),
            first: Arc::new(first),
            second: Arc::new(second),
            defect,
        }
    }
}

impl Subject for FlawedSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.first) as Arc<dyn LeaseStore>
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.second) as Arc<dyn LeaseStore>
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        self.sound.clock_ms()
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        self.sound.raw(name)
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        match (self.defect, corruption) {
            (Defect::LongNoteIsUnreadable, Corruption::LongNote) => {
                self.sound.corrupt(name, Corruption::Alien)
            }
            _ => self.sound.corrupt(name, corruption),
        }
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        self.sound.stray(key)
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        self.sound.purge(name)
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Done(Arc::clone(&self.first) as Arc<dyn LeasePurge>)
    }
}
