use super::store::RevisionKind;
use crate::page::page_of;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use tenure_core::{
    Entry, Fault, LeaseName, ListedRecord, Page, RecordEvent, RecordPage, Revision, StoreError, Version,
    Written,
};

/// What stands under a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SwapSlot {
    /// A record of the adaptor's own.
    Own(Version),
    /// Something that cannot be understood, shown as this text.
    Foreign(String),
}

/// Everything that the model keeps. Pure: no time, and what watchers should hear is collected.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SwapRecords {
    /// What stands under each name, in the order of the names.
    pub slots: BTreeMap<LeaseName, SwapSlot>,
    /// Keys among them that are no names.
    pub strays: BTreeSet<String>,
    writes: u64,
    revisions: RevisionKind,
    events: Vec<RecordEvent>,
}

impl SwapRecords {
    /// No records.
    #[must_use]
    pub fn new(revisions: RevisionKind) -> Self {
        Self {
            slots: BTreeMap::new(),
            strays: BTreeSet::new(),
            writes: 0,
            revisions,
            events: Vec::new(),
        }
    }

    /// How many writes there have been, in all: a number that only rises.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Reads one record.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] if something else stands there.
    pub fn read(&self, name: &LeaseName) -> Result<Option<Version>, StoreError> {
        match self.slots.get(name) {
            None => Ok(None),
            Some(SwapSlot::Own(version)) => Ok(Some(version.clone())),
            Some(SwapSlot::Foreign(_)) => Err(unreadable(name.as_str())),
        }
    }

    /// Writes a record if nothing stands there.
    pub fn create(&mut self, name: &LeaseName, entry: &Entry) -> Written {
        if self.slots.contains_key(name) {
            return Written::Conflict;
        }
        self.write(name, entry)
    }

    /// Writes a record if it still has this revision.
    pub fn swap(&mut self, name: &LeaseName, revision: &Revision, entry: &Entry) -> Written {
        match self.slots.get(name) {
            Some(SwapSlot::Own(version)) if version.revision == *revision => self.write(name, entry),
            Some(_) | None => Written::Conflict,
        }
    }

    /// Writes a record, whatever stands there.
    pub fn write(&mut self, name: &LeaseName, entry: &Entry) -> Written {
        self.writes += 1;
        let revision = match self.revisions {
            RevisionKind::Number => Revision::from(self.writes),
            RevisionKind::ContentHash => content_hash(entry),
        };
        self.write_as(name, entry, revision)
    }

    /// Writes a record under this revision, whatever stands there.
    pub fn write_as(&mut self, name: &LeaseName, entry: &Entry, revision: Revision) -> Written {
        let version = Version {
            revision: revision.clone(),
            entry: entry.clone(),
            ages: None,
        };
        self.slots.insert(name.clone(), SwapSlot::Own(version.clone()));
        self.events.push(RecordEvent::Written {
            name: name.clone(),
            version,
        });
        Written::As(revision)
    }

    /// Reads a page.
    #[must_use]
    pub fn list(&self, page: &Page) -> RecordPage {
        let (found, next) = page_of(page, &self.slots, &self.strays);
        let records = found.into_iter().map(|found| match found {
            Ok((name, slot)) => listed(name, slot),
            Err(stray) => unreadable_at(stray),
        });
        let records = records.collect();
        RecordPage { records, next }
    }

    /// Removes a record, as a clean-up would.
    pub fn purge(&mut self, name: &LeaseName) {
        if self.slots.remove(name).is_some() {
            self.events.push(RecordEvent::Removed { name: name.clone() });
        }
    }

    /// What happened since this was last called, for watchers.
    pub fn take_events(&mut self) -> Vec<RecordEvent> {
        std::mem::take(&mut self.events)
    }
}

fn content_hash(entry: &Entry) -> Revision {
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    Revision::new(format!("\"{:016x}\"", hasher.finish()))
}

fn listed(name: &LeaseName, slot: &SwapSlot) -> ListedRecord {
    match slot {
        SwapSlot::Own(version) => ListedRecord::Record {
            name: name.clone(),
            version: version.clone(),
        },
        SwapSlot::Foreign(_) => unreadable_at(name.as_str()),
    }
}

fn unreadable_at(key: &str) -> ListedRecord {
    ListedRecord::Unreadable {
        key: key.escape_debug().to_string(),
        error: unreadable(key),
    }
}

fn unreadable(key: &str) -> StoreError {
    StoreError::not_applied(
        Fault::Unreadable,
        format!(
            "the record of lease \"{key}\" was not written by Tenure; it was left as it is: remove or rename it"
        ),
    )
}
