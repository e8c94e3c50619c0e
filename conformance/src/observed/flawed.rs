//! The real adaptor over a store, or with a clock, that lies to it: so each of its rules can be broken from
//! outside, and the adaptor itself stays free of switches.

use super::clock::ObserverClock;
use super::defect::ObservedDefect;
use super::records::{SwapRecords, SwapSlot};
use super::store::SwapModel;
use super::subject::ObservedSubject;
use crate::{Corruption, Hooked, Subject};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{
    Answer, Clock, CompareAndSwap, Entry, Finding, Floor, LeaseName, LeasePurge, LeaseStore, Moment,
    ObservedStore, Page, Reading, RecordEvent, RecordPage, RecordWatch, Revision, Scope, StoreError,
    StoreTraits, Ttl, Written,
};
use tokio::time::sleep;

/// How long the readings of the second client travel at first, before they are served: long enough that
/// counting it shows once they are fast.
const READ_DELAY: Duration = Duration::from_millis(250);

/// Until when they do, by that client's clock.
const READS_SLOW_UNTIL: Moment = Moment::from_millis(550);

/// How wrong the clocks are: so much that a missing margin shows in a third of a second.
const RATE_ERROR_PPM: u32 = 100_000;

/// What an observer that counts by its own ttl has configured.
const OWN_TTL_MS: u64 = 300;

/// The adaptor with a defect, or with none, as a subject of the suite. The clocks are wrong by a tenth.
pub struct FlawedObservedSubject {
    sound: ObservedSubject,
    defect: Option<ObservedDefect>,
}

impl FlawedObservedSubject {
    /// With this defect. With `None`, and where a defect needs it to show, the second client's first
    /// readings are slow.
    #[must_use]
    pub fn new(defect: Option<ObservedDefect>) -> Self {
        Self {
            sound: ObservedSubject::numbered().with_rate_error(RATE_ERROR_PPM),
            defect,
        }
    }

    fn client(&self, fast_by_ppm: i32, slow_reads: bool) -> Arc<dyn LeaseStore> {
        let last = Arc::default();
        let clock = ObserverClock::running(fast_by_ppm);
        let rate_error_ppm = match self.defect {
            Some(ObservedDefect::NoRateMargin) => 0,
            Some(_) | None => RATE_ERROR_PPM,
        };
        let store = FlawedSwap {
            model: self.sound.storage().clone(),
            defect: self.defect,
            slow_reads,
            clock: clock.clone(),
            last: Arc::clone(&last),
        };
        let clock = FlawedClock { clock, last };
        Arc::new(ObservedStore::new(store, clock, rate_error_ppm))
    }
}

impl Subject for FlawedObservedSubject {
    fn store(&self) -> Arc<dyn LeaseStore> {
        self.client(-RATE_ERROR_PPM.cast_signed(), false)
    }

    fn other(&self) -> Arc<dyn LeaseStore> {
        let slow_reads = matches!(self.defect, None | Some(ObservedDefect::CountsFromAsking));
        self.client(RATE_ERROR_PPM.cast_signed(), slow_reads)
    }

    fn clock_ms(&self) -> Answer<'_, Hooked<u64>> {
        self.sound.clock_ms()
    }

    fn raw<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<Option<String>>> {
        self.sound.raw(name)
    }

    fn corrupt<'a>(&'a self, name: &'a LeaseName, corruption: Corruption) -> Answer<'a, Hooked<()>> {
        self.sound.corrupt(name, corruption)
    }

    fn stray<'a>(&'a self, key: &'a str) -> Answer<'a, Hooked<()>> {
        self.sound.stray(key)
    }

    fn purge<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Hooked<()>> {
        self.sound.purge(name)
    }

    fn cleaner(&self) -> Hooked<Arc<dyn LeasePurge>> {
        Hooked::Unsupported("the adaptor has no clock that spans observers; a store below it may")
    }
}

/// What a client remembers of its last reading, in order to lie.
#[derive(Default)]
struct Last {
    asked_at: Option<Moment>,
    revisions: BTreeMap<LeaseName, Revision>,
}

/// A clock that shows, once, the moment at which the last reading was asked for.
struct FlawedClock {
    clock: ObserverClock,
    last: Arc<Mutex<Last>>,
}

impl Clock for FlawedClock {
    fn now(&self) -> Moment {
        let asked_at = lock(&self.last).asked_at.take();
        asked_at.unwrap_or_else(|| self.clock.now())
    }
}

struct FlawedSwap {
    model: SwapModel,
    defect: Option<ObservedDefect>,
    slow_reads: bool,
    clock: ObserverClock,
    last: Arc<Mutex<Last>>,
}

impl FlawedSwap {
    fn spoil_reading(&self, name: &LeaseName, asked_at: Moment, mut reading: Reading) -> Reading {
        match (self.defect, &mut reading.found) {
            (Some(ObservedDefect::OwnTtlCounts), Some(found)) => {
                found.entry.ttl = Ttl::from_millis(OWN_TTL_MS).expect("a valid ttl");
            }
            (Some(ObservedDefect::CountsFromAsking), _) => lock(&self.last).asked_at = Some(asked_at),
            (Some(ObservedDefect::ExpiryAcrossRevisions), Some(found)) => {
                let shown = Revision::new("the only one");
                let real = std::mem::replace(&mut found.revision, shown);
                lock(&self.last).revisions.insert(name.clone(), real);
            }
            (Some(ObservedDefect::FloorForgotten), _) => reading.token_floor = 0,
            (_, _) => {}
        }
        reading
    }

    fn swap_now(
        &self,
        records: &mut SwapRecords,
        name: &LeaseName,
        revision: &Revision,
        entry: &Entry,
    ) -> Written {
        match self.defect {
            Some(ObservedDefect::SwapIgnoresRevision) => records.write(name, entry),
            Some(ObservedDefect::ExpiryAcrossRevisions) => {
                let real = lock(&self.last).revisions.get(name).cloned();
                records.swap(name, &real.expect("it was read before"), entry)
            }
            Some(ObservedDefect::RenewalKeepsRevision) => match records.slots.get(name) {
                Some(SwapSlot::Own(now))
                    if now.revision == *revision && entry.renewals > now.entry.renewals =>
                {
                    let uncounted = Entry {
                        renewals: now.entry.renewals,
                        ..entry.clone()
                    };
                    records.write_as(name, &uncounted, revision.clone())
                }
                Some(_) | None => records.swap(name, revision, entry),
            },
            Some(_) | None => records.swap(name, revision, entry),
        }
    }

    fn spoil_writing(&self, written: Written) -> Written {
        match (self.defect, written) {
            (Some(ObservedDefect::ConflictIsSuccess), Written::Conflict) => {
                Written::As(Revision::new("made up"))
            }
            (_, written) => written,
        }
    }
}

impl CompareAndSwap for FlawedSwap {
    fn traits(&self) -> StoreTraits {
        self.model.traits()
    }

    fn read<'a>(&'a self, name: &'a LeaseName, floor: Floor) -> Answer<'a, Result<Reading, StoreError>> {
        Box::pin(async move {
            let asked_at = self.clock.now();
            if self.slow_reads && asked_at < READS_SLOW_UNTIL {
                sleep(READ_DELAY).await;
            }
            let reading = self.model.read(name, floor).await?;
            Ok(self.spoil_reading(name, asked_at, reading))
        })
    }

    fn create<'a>(
        &'a self,
        name: &'a LeaseName,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(async move { Ok(self.spoil_writing(self.model.create(name, entry).await?)) })
    }

    fn swap<'a>(
        &'a self,
        name: &'a LeaseName,
        revision: &'a Revision,
        entry: &'a Entry,
    ) -> Answer<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let swap = |records: &mut SwapRecords| self.swap_now(records, name, revision, entry);
            Ok(self.spoil_writing(self.model.travel(swap).await))
        })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<RecordPage, StoreError>> {
        self.model.list(page)
    }

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn RecordWatch>, StoreError>> {
        Box::pin(async move {
            let sound = self.model.watch(scope).await?;
            let defect = self.defect;
            Ok(Box::new(FlawedWatch { sound, defect }) as Box<dyn RecordWatch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        self.model.examine()
    }
}

struct FlawedWatch {
    sound: Box<dyn RecordWatch>,
    defect: Option<ObservedDefect>,
}

impl RecordWatch for FlawedWatch {
    fn next(&mut self) -> Answer<'_, Result<RecordEvent, StoreError>> {
        Box::pin(async {
            loop {
                let event = self.sound.next().await?;
                let is_wish = matches!(&event, RecordEvent::Written { version, .. } if version.entry.asked_to_step_down);
                if !is_wish || self.defect != Some(ObservedDefect::WatchMissesWishes) {
                    return Ok(event);
                }
            }
        })
    }
}

fn lock(last: &Mutex<Last>) -> MutexGuard<'_, Last> {
    // A case that panicked does not spoil it for others.
    last.lock().unwrap_or_else(PoisonError::into_inner)
}
