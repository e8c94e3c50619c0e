use super::super::records::{Record, Records, Slot};
use super::super::{DELAY, Defect, ModelStore};
use super::watch::FlawedWatch;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Fault, Finding, Interest, Lease, LeaseName, LeasePage, LeasePurge,
    LeaseStore, Page, Purge, Purged, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits,
    Watch, WatchEvent, Work,
};
use tokio::time::{Instant, sleep};

/// How long a cached reading is answered.
const CACHED: Duration = Duration::from_millis(25);

/// How long after its future was dropped a haunting request is applied.
const HAUNTS_AFTER: Duration = Duration::from_millis(40);

type Cache = HashMap<LeaseName, (Instant, Option<Lease>)>;

/// A client of a model, with a defect.
#[derive(Clone)]
pub(super) struct FlawedStore {
    pub(super) sound: ModelStore,
    pub(super) defect: Defect,
    /// The lock that a dropped request leaves behind; one for all clients.
    locked: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    cache: Arc<Mutex<Cache>>,
    caused: Arc<Mutex<Vec<WatchEvent>>>,
}

impl FlawedStore {
    pub(super) fn new(sound: ModelStore, defect: Defect) -> Self {
        Self {
            sound,
            defect,
            locked: Arc::default(),
            requests: Arc::default(),
            cache: Arc::default(),
            caused: Arc::default(),
        }
    }

    /// Another client of the same storage.
    pub(super) fn another_client(&self) -> Self {
        Self {
            requests: Arc::default(),
            cache: Arc::default(),
            caused: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether this event was caused through this client.
    pub(super) fn has_caused(&self, event: &WatchEvent) -> bool {
        let caused = self.caused.lock().unwrap_or_else(PoisonError::into_inner);
        caused.contains(event)
    }

    pub(super) async fn pass<T>(&self, apply: impl FnOnce(Defect, &mut Records, u64) -> T) -> T {
        self.requests.fetch_add(1, Ordering::Relaxed);
        while self.locked.load(Ordering::SeqCst) {
            sleep(DELAY).await;
        }
        let locks = self.defect == Defect::DropLeavesLock;
        if locks {
            self.locked.store(true, Ordering::SeqCst);
        }
        let answer = self
            .sound
            .travel(|records, now_ms| {
                let answer = apply(self.defect, records, now_ms);
                let mut caused = self.caused.lock().unwrap_or_else(PoisonError::into_inner);
                caused.extend(records.events.iter().cloned());
                answer
            })
            .await;
        if locks {
            self.locked.store(false, Ordering::SeqCst);
        }
        answer
    }

    fn folded(&self, name: &LeaseName) -> LeaseName {
        match self.defect {
            Defect::NamesFoldCase => {
                LeaseName::new(name.as_str().to_lowercase()).unwrap_or_else(|_| name.clone())
            }
            _ => name.clone(),
        }
    }
}

/// Applies a request of which the future was dropped, some time after.
struct Haunting {
    store: ModelStore,
    request: Option<Acquire>,
}

impl Drop for Haunting {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        let store = self.store.clone();
        drop(tokio::spawn(async move {
            sleep(HAUNTS_AFTER).await;
            store.step(|records, now_ms| {
                drop(Defect::LateDuplicateMakesGhost.acquire(records, &request, now_ms))
            });
        }));
    }
}

impl LeaseStore for FlawedStore {
    fn traits(&self) -> StoreTraits {
        let mut traits = self.sound.traits();
        if self.defect == Defect::TraitsVary {
            let requests = self.requests.load(Ordering::Relaxed);
            traits.batch_max = NonZeroUsize::new(500 - requests.min(400)).expect("at least 100");
        }
        traits
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            if self.defect != Defect::TtlUnchecked {
                ModelStore::check(&request.name, request.ttl)?;
            }
            if self.defect == Defect::LongestTtlRefused && request.ttl == self.sound.traits().ttl_max {
                let message = format!("ttl {} of lease \"{}\" is too long", request.ttl, request.name);
                return Err(StoreError::not_applied(Fault::Invalid, message));
            }
            let request = Acquire {
                name: self.folded(&request.name),
                ..request.clone()
            };
            if self.defect == Defect::DecidedBeforeWritten {
                let names = vec![request.name.clone()];
                let rule = |records: &mut Records, now_ms| records.acquire(&request, now_ms);
                return self.write_back(names, rule).await;
            }
            let mut haunting = Haunting {
                store: self.sound.clone(),
                request: (self.defect == Defect::DropHaunts).then(|| request.clone()),
            };
            let answer = self
                .pass(|defect, records, now_ms| defect.acquire(records, &request, now_ms))
                .await;
            haunting.request = None;
            answer
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        let defect = self.defect;
        let rule = move |records: &mut Records, now_ms| {
            let refused: Vec<Option<StoreError>> = requests
                .iter()
                .map(|request| ModelStore::check(&request.name, request.ttl).err())
                .collect();
            if let (Defect::TtlRefusesTheBatch, Some(error)) = (defect, refused.iter().flatten().next()) {
                return vec![Err(error.clone()); requests.len()];
            }
            if refused.iter().all(Option::is_none) {
                return defect.renew_all(records, requests, now_ms);
            }
            let one_by_one = requests
                .iter()
                .zip(refused)
                .map(|(request, refused)| match refused {
                    Some(error) => Err(error),
                    None => records.renew(request, now_ms),
                });
            one_by_one.collect()
        };
        let change = |record: &mut Record, decided: &Record| {
            (record.ttl, record.expires_ms) = (decided.ttl, decided.expires_ms);
        };
        let names = requests.iter().map(|request| request.name.clone());
        let steps = defect.steps_of_renew(requests.len());
        Box::pin(self.stepwise(steps, names.collect(), rule, change))
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        let rule = |records: &mut Records, now_ms| self.defect.release_all(records, requests, now_ms);
        let change = |record: &mut Record, decided: &Record| record.released_ms = decided.released_ms;
        let names = requests.iter().map(|request| request.name.clone());
        let steps = self.defect.steps_of_release(requests.len());
        Box::pin(self.stepwise(steps, names.collect(), rule, change))
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let rule = |records: &mut Records, now_ms| self.defect.ask(records, request, now_ms);
        let change = |record: &mut Record, decided: &Record| record.asked = decided.asked;
        let names = vec![request.name.clone()];
        Box::pin(self.stepwise(self.defect.steps_of_ask(), names, rule, change))
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async move {
            let lock = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            if self.defect == Defect::ReadsAreCached
                && let Some((read, lease)) = lock().get(name)
                && read.elapsed() < CACHED
            {
                return Ok(lease.clone());
            }
            let folded = self.folded(name);
            let lease = self
                .pass(|defect, records, now_ms| defect.get(records, &folded, now_ms))
                .await?;
            lock().insert(name.clone(), (Instant::now(), lease.clone()));
            Ok(lease)
        })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(self.pass(move |defect, records, now_ms| defect.list(records, page, now_ms)))
    }

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            let watch = FlawedWatch::start(self.clone(), scope, interest).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async {
            if self.defect == Defect::ExaminationLeavesRecord {
                let name = LeaseName::new("scratch of an examination").expect("a valid name");
                self.pass(|_, records, _| records.slots.insert(name, Slot::Foreign("scratch".to_owned())))
                    .await;
            }
            self.sound.examine().await
        })
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        self.sound.run_beside(work)
    }
}

impl LeasePurge for FlawedStore {
    fn notes_first(&self) -> bool {
        self.sound.notes_first()
    }

    fn purge<'a>(&'a self, request: &'a Purge) -> Answer<'a, Result<Purged, StoreError>> {
        Box::pin(self.pass(move |defect, records, now_ms| defect.clean_up(records, request, now_ms)))
    }
}
