use super::entry::{Entry, Revision, Version};
use super::round::{Floor, Reading, Written};
use crate::{Answer, Cursor, Finding, LeaseName, Moment, Page, Scope, StoreError, StoreTraits};

/// A system that keeps records and compares before it writes: what [`ObservedStore`](super::ObservedStore)
/// makes a [`LeaseStore`](crate::LeaseStore) of.
///
/// # To ensure correctness
/// - Create and swap are **one atomic step** each in the store, and survive what it acknowledges.
/// - Every write makes a [`Revision`] that the record never had before: at least in its
///   [epoch](Revision::in_epoch), and no swap is sent over one whose epoch may be over.
/// - **No retry, no background task.** A driver that repeats a write by itself, and then finds its own first
///   write in the way, must not say [`Written::Conflict`]: a conflict says that nothing of this was written.
///   When unsure: [`Certainty::Unknown`](crate::Certainty::Unknown).
/// - A record is never removed, unless [`Reading::token_floor`] rises with time.
/// - A record that cannot be understood is answered with [`Fault::Unreadable`](crate::Fault::Unreadable) and
///   left as it is.
/// - A future that is dropped may or may not have been applied. Nothing may be left locked by dropping it.
///
/// A read may be answered by a replica that lags: it costs a conflict or a longer wait, or, where it shows
/// no record yet, the term that is asked about; never safety.
pub trait CompareAndSwap: Send + Sync {
    /// What this store is and can do. Constant; no I/O. The timekeeper is answered as
    /// [`Observer`](crate::Timekeeper::Observer), whatever stands here.
    fn traits(&self) -> StoreTraits;

    /// Reads one record. With [`Floor::Unwanted`], nobody looks at [`Reading::token_floor`]: it may be 0.
    ///
    /// # Errors
    /// [`StoreError`], with whatever certainty: a read changes nothing.
    fn read<'a>(&'a self, name: &'a LeaseName, floor: Floor) -> Answer<'a, Result<Reading, StoreError>>;

    /// Writes the record if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; `Unknown` unless it certainly was not applied.
    fn create<'a>(&'a self, name: &'a LeaseName, entry: &'a Entry)
    -> Answer<'a, Result<Written, StoreError>>;

    /// Writes the record if it still has this revision.
    ///
    /// # Errors
    /// [`StoreError`]; `Unknown` unless it certainly was not applied.
    fn swap<'a>(
        &'a self,
        name: &'a LeaseName,
        revision: &'a Revision,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>>;

    /// Reads records in the order of their names (bytes of UTF-8), a page at a time; the limit is in its
    /// range.
    ///
    /// # Errors
    /// [`StoreError`] if the page could not be read at all.
    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<RecordPage, StoreError>>;

    /// Starts watching; when this answers, the watch is in place. It tells of **every** write, renewals
    /// included: who sees them when they happen takes over one ttl after the last one, who does not after up
    /// to two.
    ///
    /// # Errors
    /// [`Fault::Unsupported`](crate::Fault::Unsupported) where the store cannot push.
    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn RecordWatch>, StoreError>>;

    /// Examines the store for an operator; see [`LeaseStore::examine`](crate::LeaseStore::examine).
    ///
    /// # Errors
    /// [`StoreError`] only if nothing at all could be examined.
    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>>;
}

/// A clock that [`ObservedStore`](super::ObservedStore) is given, since nothing here reads one.
pub trait Clock: Send + Sync {
    /// What it shows now: a monotonic time that counts the machine's sleep, as every [`Moment`].
    fn now(&self) -> Moment;
}

/// A page of records.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordPage {
    /// The records, in the order of their names.
    pub records: Vec<ListedRecord>,
    /// Where the next page begins: its [`Page::after`]. `None` on the last page.
    pub next: Option<Cursor>,
}

/// One record of a page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ListedRecord {
    /// A record.
    Record {
        /// Its name.
        name: LeaseName,
        /// What it holds, and which version it is.
        version: Version,
    },
    /// A record that cannot be understood.
    Unreadable {
        /// Its key as the store shows it, escaped.
        key: String,
        /// Why.
        error: StoreError,
    },
}

/// What a store's watch tells.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RecordEvent {
    /// A record was written.
    Written {
        /// Which.
        name: LeaseName,
        /// What it holds now.
        version: Version,
    },
    /// A record was removed.
    Removed {
        /// Which.
        name: LeaseName,
    },
    /// Something may have been missed, or was written that cannot be understood: look again.
    Gap,
}

/// A running watch of records. Dropping it ends it.
///
/// The events of one record come in the order of its writes. Some may be left out if a later one is told; any
/// may be repeated.
pub trait RecordWatch: Send {
    /// The next event. May be dropped and called again without losing one.
    ///
    /// # Errors
    /// The watch is over; start a new one, then look again.
    fn next(&mut self) -> Answer<'_, Result<RecordEvent, StoreError>>;
}
