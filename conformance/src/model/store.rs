use super::watch::ModelWatch;
use super::{ModelClock, Records};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Durability, Fault, Finding, Interest, Lease, LeaseName, LeasePage,
    LeasePurge, LeaseStore, Page, Purge, Purged, Release, Released, Renew, Renewed, Scope, StoreError,
    StoreTraits, Timekeeper, TokenSource, Ttl, Verdict, Watch, WatchEvent, WatchSource, Work,
};
use tokio::sync::broadcast;
use tokio::time::sleep;

/// The kind that a model store calls itself.
pub const TRAITS_KIND: &str = "model";

/// How long a request of the model travels, each way.
pub const DELAY: Duration = Duration::from_millis(1);

/// Events that a watch may fall behind by.
pub(super) const EVENTS_MAX: usize = 1_024;

const BATCH_MAX: NonZeroUsize = NonZeroUsize::new(500).expect("500 is not zero");
const TTL_MIN_MS: u64 = 200;
const TTL_MAX_MS: u64 = 60 * 60 * 1_000;

/// A store in memory. Clones share the records, as clients of one server do.
///
/// A request travels [`DELAY`] before it is applied and as long back, so that dropping its future may come
/// before or after, as with a real server.
#[derive(Clone)]
pub struct ModelStore {
    records: Arc<Mutex<Records>>,
    clock: ModelClock,
    events: broadcast::Sender<WatchEvent>,
}

impl ModelStore {
    /// An empty store that lives by `clock`.
    #[must_use]
    pub fn new(clock: ModelClock) -> Self {
        Self {
            records: Arc::default(),
            clock,
            events: broadcast::Sender::new(EVENTS_MAX),
        }
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> &ModelClock {
        &self.clock
    }

    /// One step behind the clients' backs, or one of their own: watchers hear of it.
    pub fn step<T>(&self, apply: impl FnOnce(&mut Records, u64) -> T) -> T {
        let mut records = self.lock();
        let answer = apply(&mut records, self.clock.now_ms());
        for event in records.take_events() {
            // An error only says that nobody is watching.
            drop(self.events.send(event));
        }
        answer
    }

    /// One step of a client: there, applied, and back.
    pub(super) async fn travel<T>(&self, apply: impl FnOnce(&mut Records, u64) -> T) -> T {
        sleep(DELAY).await;
        let answer = self.step(apply);
        sleep(DELAY).await;
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        // No step leaves the records half changed: a case that panicked does not spoil them for others.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn range() -> (Ttl, Ttl) {
        let valid = "the model's range is within every ttl's range";
        (
            Ttl::from_millis(TTL_MIN_MS).expect(valid),
            Ttl::from_millis(TTL_MAX_MS).expect(valid),
        )
    }

    pub(super) fn check(name: &LeaseName, ttl: Ttl) -> Result<(), StoreError> {
        let (ttl_min, ttl_max) = Self::range();
        if (ttl_min..=ttl_max).contains(&ttl) {
            return Ok(());
        }
        let message = format!(
            "ttl {ttl} of lease \"{name}\" is outside {ttl_min} to {ttl_max}, which this store keeps to"
        );
        Err(StoreError::not_applied(Fault::Invalid, message))
    }
}

impl LeaseStore for ModelStore {
    fn traits(&self) -> StoreTraits {
        let (ttl_min, ttl_max) = Self::range();
        StoreTraits {
            kind: TRAITS_KIND,
            location: "memory".to_owned(),
            timekeeper: Timekeeper::Server,
            durability: Durability::Safe,
            watch: WatchSource::Push,
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min,
            ttl_max,
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            Self::check(&request.name, request.ttl)?;
            self.travel(|records, now_ms| records.acquire(request, now_ms))
                .await
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(self.travel(|records, now_ms| {
            let renew = |request: &Renew| {
                Self::check(&request.name, request.ttl)?;
                records.renew(request, now_ms)
            };
            requests.iter().map(renew).collect()
        }))
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        Box::pin(self.travel(|records, now_ms| {
            let release = |request| records.release(request, now_ms);
            requests.iter().map(release).collect()
        }))
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        Box::pin(self.travel(|records, now_ms| records.ask(request, now_ms)))
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(self.travel(|records, now_ms| records.get(name, now_ms)))
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(self.travel(|records, now_ms| records.list(page, now_ms)))
    }

    fn watch<'a>(&'a self, scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            sleep(DELAY).await;
            let watch: Box<dyn Watch> = Box::new(ModelWatch {
                scope: scope.clone(),
                events: self.events.subscribe(),
            });
            sleep(DELAY).await;
            Ok(watch)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(self.travel(|records, now_ms| {
            let finding = |subject: &str, detail: String| Finding {
                subject: subject.to_owned(),
                verdict: Verdict::Good,
                detail,
                repair: None,
            };
            Ok(vec![
                finding("records", format!("{} in memory", records.slots.len())),
                finding("clock", format!("{now_ms} ms, never falls")),
            ])
        }))
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        Err(work)
    }
}

impl LeasePurge for ModelStore {
    fn notes_first(&self) -> bool {
        false
    }

    fn purge<'a>(&'a self, request: &'a Purge) -> Answer<'a, Result<Purged, StoreError>> {
        Box::pin(self.travel(|records, now_ms| records.clean_up(request, now_ms)))
    }
}
