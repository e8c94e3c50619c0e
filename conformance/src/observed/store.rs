use super::records::SwapRecords;
use crate::model::{DELAY, ModelClock};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::{
    Answer, CompareAndSwap, Durability, Entry, Fault, Finding, Floor, LeaseName, Page, Reading, RecordEvent,
    RecordPage, RecordWatch, Revision, Scope, StoreError, StoreTraits, Timekeeper, TokenSource, Ttl, Verdict,
    WatchSource, Written,
};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

/// Events that a watch may fall behind by.
const EVENTS_MAX: usize = 1_024;

const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(500).expect("500 is not zero");
const TTL_MIN_MS: u64 = 200;
const TTL_MAX_MS: u64 = 60 * 60 * 1_000;

/// How the model names the versions of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RevisionKind {
    /// By numbers that rise with every write, as NATS and etcd do.
    Number,
    /// By a hash of the content, as some object stores do: equal content has an equal revision.
    ContentHash,
}

/// What the model itself can say of time.
#[derive(Clone, Debug)]
pub enum TokenFloor {
    /// What this clock shows, in milliseconds.
    Clock(ModelClock),
    /// How many writes it has made.
    Writes,
}

/// A store in memory that only compares and swaps. Clones share the records, as clients of one server do.
///
/// A request travels [`DELAY`] before it is applied and as long back.
#[derive(Clone)]
pub struct SwapModel {
    records: Arc<Mutex<SwapRecords>>,
    floor: TokenFloor,
    events: broadcast::Sender<RecordEvent>,
}

impl SwapModel {
    /// An empty store.
    #[must_use]
    pub fn new(revisions: RevisionKind, floor: TokenFloor) -> Self {
        Self {
            records: Arc::new(Mutex::new(SwapRecords::new(revisions))),
            floor,
            events: broadcast::Sender::new(EVENTS_MAX),
        }
    }

    /// What it can say of time.
    #[must_use]
    pub fn floor(&self) -> &TokenFloor {
        &self.floor
    }

    /// One step behind the clients' backs, or one of their own: watchers hear of it.
    pub fn step<T>(&self, apply: impl FnOnce(&mut SwapRecords) -> T) -> T {
        let mut records = self.lock();
        let answer = apply(&mut records);
        for event in records.take_events() {
            // An error only says that nobody is watching.
            drop(self.events.send(event));
        }
        answer
    }

    /// Says that something happened that cannot be told.
    pub(super) fn tell_gap(&self) {
        drop(self.events.send(RecordEvent::Gap));
    }

    /// One step of a client: there, applied, and back.
    pub(super) async fn travel<T>(&self, apply: impl FnOnce(&mut SwapRecords) -> T) -> T {
        sleep(DELAY).await;
        let answer = self.step(apply);
        sleep(DELAY).await;
        answer
    }

    pub(super) fn reading(
        &self,
        records: &SwapRecords,
        name: &LeaseName,
        floor: Floor,
    ) -> Result<Reading, StoreError> {
        let token_floor = match (floor, &self.floor) {
            (Floor::Unwanted, _) => 0,
            (Floor::Wanted, TokenFloor::Clock(clock)) => clock.now_ms(),
            (Floor::Wanted, TokenFloor::Writes) => records.writes() + 1,
        };
        Ok(Reading {
            found: records.read(name)?,
            token_floor,
        })
    }

    fn lock(&self) -> MutexGuard<'_, SwapRecords> {
        // No step leaves the records half changed: a case that panicked does not spoil them for others.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompareAndSwap for SwapModel {
    fn traits(&self) -> StoreTraits {
        let valid = "the model's range is within every ttl's range";
        StoreTraits {
            kind: "swapmodel",
            location: "memory".to_owned(),
            timekeeper: Timekeeper::Observer,
            durability: Durability::Safe,
            watch: WatchSource::Push,
            token_source: match self.floor {
                TokenFloor::Clock(_) => TokenSource::CounterAndClock,
                TokenFloor::Writes => TokenSource::Revision,
            },
            batch_max: BATCH_MAX,
            ttl_min: Ttl::from_millis(TTL_MIN_MS).expect(valid),
            ttl_max: Ttl::from_millis(TTL_MAX_MS).expect(valid),
        }
    }

    fn read<'a>(&'a self, name: &'a LeaseName, floor: Floor) -> Answer<'a, Result<Reading, StoreError>> {
        Box::pin(self.travel(move |records| self.reading(records, name, floor)))
    }

    fn create<'a>(
        &'a self,
        name: &'a LeaseName,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(self.travel(|records| Ok(records.create(name, entry))))
    }

    fn swap<'a>(
        &'a self,
        name: &'a LeaseName,
        revision: &'a Revision,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(self.travel(|records| Ok(records.swap(name, revision, entry))))
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<RecordPage, StoreError>> {
        Box::pin(self.travel(|records| Ok(records.list(page))))
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn RecordWatch>, StoreError>> {
        Box::pin(async move {
            sleep(DELAY).await;
            let watch: Box<dyn RecordWatch> = Box::new(SwapWatch {
                scope: scope.clone(),
                events: self.events.subscribe(),
            });
            sleep(DELAY).await;
            Ok(watch)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(self.travel(|records| {
            Ok(vec![Finding {
                subject: "records".to_owned(),
                verdict: Verdict::Good,
                detail: format!("{} in memory", records.slots.len()),
                repair: None,
            }])
        }))
    }
}

/// A watch of the model. Falls behind by [`EVENTS_MAX`] events at most, and then says that there is a gap.
struct SwapWatch {
    scope: Scope,
    events: broadcast::Receiver<RecordEvent>,
}

impl RecordWatch for SwapWatch {
    fn next(&mut self) -> Answer<'_, Result<RecordEvent, StoreError>> {
        Box::pin(async {
            loop {
                match self.events.recv().await {
                    Ok(RecordEvent::Written { name, .. } | RecordEvent::Removed { name })
                        if !self.scope.covers(&name) => {}
                    Ok(event) => return Ok(event),
                    Err(RecvError::Lagged(_)) => return Ok(RecordEvent::Gap),
                    Err(RecvError::Closed) => {
                        let message = "the watched model store was dropped; start another";
                        return Err(StoreError::not_applied(Fault::Unreachable, message));
                    }
                }
            }
        })
    }
}
