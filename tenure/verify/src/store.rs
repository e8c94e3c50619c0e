//! The model store of the conformance suite, in virtual time and under a changing weather.

use crate::clock;
use crate::sync::point;
use shuttle::rand::{Rng, thread_rng};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_conformance::model::{Record, Records};
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Durability, Fault, FencingToken, Finding, Interest, Lease,
    LeaseName, LeasePage, LeaseStore, Moment, Page, Release, Released, Renew, Renewed, Scope, StoreError,
    StoreTraits, Timekeeper, TokenSource, Ttl, Watch, WatchEvent, WatchSource, Work,
};
use tokio::sync::broadcast;

/// How the store answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weather {
    /// At once.
    Fair,
    /// After up to so long there, and as long back.
    Slow(Duration),
    /// With an error; nothing is applied.
    Failing,
    /// At that moment, or at once after it; requests are applied then.
    At(Moment),
    /// Never; the request is applied, or not.
    Silent,
}

/// What a scenario knows and the store checks.
struct State {
    records: Records,
    weather: Weather,
    /// Terms whose work has not ended: none of them may be released.
    at_work: BTreeSet<FencingToken>,
}

pub(crate) struct Store {
    state: Mutex<State>,
    events: broadcast::Sender<WatchEvent>,
    /// Whether a watch may still break; one does, once.
    unbroken: Arc<AtomicBool>,
}

impl Store {
    pub(crate) fn new(weather: Weather) -> Arc<Self> {
        let state = State {
            records: Records::default(),
            weather,
            at_work: BTreeSet::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            events: broadcast::Sender::new(256),
            unbroken: Arc::new(AtomicBool::new(true)),
        })
    }

    /// Nothing lets another go first while it is locked, so nobody ever waits for it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn turn(&self, weather: Weather) {
        point();
        self.state().weather = weather;
    }

    /// From now until [`end_work`](Self::end_work) the term must not be released.
    pub(crate) fn begin_work(&self, token: FencingToken) {
        self.state().at_work.insert(token);
    }

    pub(crate) fn end_work(&self, token: FencingToken) {
        self.state().at_work.remove(&token);
    }

    /// What the record says at this moment, without letting anybody go first.
    pub(crate) fn peek(&self, name: &LeaseName) -> Option<Record> {
        self.state()
            .records
            .read(name)
            .expect("no scenario leaves foreign records")
            .cloned()
    }

    pub(crate) fn is_held(&self, name: &LeaseName) -> bool {
        self.peek(name).is_some_and(|record| record.is_held(now_ms()))
    }

    async fn travel<T>(&self, apply: impl FnOnce(&mut Records, u64) -> T) -> Result<T, StoreError> {
        point();
        let weather = self.state().weather;
        match weather {
            Weather::Fair => {}
            Weather::Slow(longest) => clock::sleep(part_of(longest)).await,
            Weather::At(moment) => clock::sleep_until(moment).await,
            Weather::Failing => return Err(StoreError::not_applied(Fault::Unreachable, "bad weather")),
            Weather::Silent if thread_rng().r#gen() => return std::future::pending().await,
            Weather::Silent => {}
        }
        let outcome = {
            let mut state = self.state();
            let outcome = apply(&mut state.records, now_ms());
            for event in state.records.take_events() {
                // Nobody needs to watch.
                let _ = self.events.send(event);
            }
            outcome
        };
        point();
        match weather {
            Weather::Fair | Weather::Failing | Weather::At(_) => {}
            Weather::Slow(longest) => clock::sleep(part_of(longest)).await,
            Weather::Silent => return std::future::pending().await,
        }
        Ok(outcome)
    }
}

fn part_of(longest: Duration) -> Duration {
    longest * thread_rng().gen_range(0..=4) / 4
}

fn now_ms() -> u64 {
    clock::peek().as_nanos() / 1_000_000
}

impl LeaseStore for Store {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "model",
            location: "memory".to_owned(),
            timekeeper: Timekeeper::Server,
            durability: Durability::Safe,
            watch: WatchSource::Push,
            token_source: TokenSource::CounterAndClock,
            batch_max: std::num::NonZeroUsize::MIN,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            self.travel(|records, now_ms| records.acquire(request, now_ms))
                .await?
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(async move {
            let renew = |records: &mut Records, now_ms| {
                requests
                    .iter()
                    .map(|request| records.renew(request, now_ms))
                    .collect()
            };
            let failed = |error: StoreError| requests.iter().map(|_| Err(error.clone())).collect();
            self.travel(renew).await.unwrap_or_else(failed)
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        for request in requests {
            let at_work = self.state().at_work.contains(&request.token);
            assert!(
                !at_work || std::thread::panicking(),
                "term {} is released while its work goes on",
                request.token
            );
        }
        Box::pin(async move {
            let release = |records: &mut Records, now_ms| {
                requests
                    .iter()
                    .map(|request| records.release(request, now_ms))
                    .collect()
            };
            let failed = |error: StoreError| requests.iter().map(|_| Err(error.clone())).collect();
            self.travel(release).await.unwrap_or_else(failed)
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        Box::pin(async move {
            self.travel(|records, now_ms| records.ask(request, now_ms))
                .await?
        })
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(async move { self.travel(|records, now_ms| records.get(name, now_ms)).await? })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(async move { self.travel(|records, now_ms| records.list(page, now_ms)).await? })
    }

    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            point();
            let watch: Box<dyn Watch> = Box::new(StoreWatch {
                events: self.events.subscribe(),
                unbroken: self.unbroken.clone(),
            });
            point();
            Ok(watch)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        Err(work)
    }
}

struct StoreWatch {
    events: broadcast::Receiver<WatchEvent>,
    unbroken: Arc<AtomicBool>,
}

impl Watch for StoreWatch {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async {
            point();
            // One lease, so every event is of it. Once, perhaps, the connection breaks instead.
            if thread_rng().gen_ratio(1, 16) && self.unbroken.swap(false, Ordering::SeqCst) {
                return Err(StoreError::not_applied(Fault::Unreachable, "the watch broke"));
            }
            self.events
                .recv()
                .await
                .map_err(|_| StoreError::not_applied(Fault::Unreachable, "the store is gone"))
        })
    }
}
