use super::round::{Decide, Need, Response, Round};
use super::sightings::Sightings;
use super::swap::{Clock, CompareAndSwap, ListedRecord};
use super::together::together;
use super::watch::ObservedWatch;
use crate::{
    Acquire, Acquired, Answer, Ask, Asked, Fault, Finding, Interest, Lease, LeaseName, LeasePage, LeaseStore,
    Listed, Moment, Page, Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Timekeeper, Ttl,
    Verdict, Watch, Work,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`LeaseStore`] over a store that only compares and swaps, by observed time: see [`Round`].
///
/// One per process, so that all its candidates share what it has seen. It starts no task; a request takes two
/// round trips, a read and a write, and more only where others write in between. What its own process has
/// written last is renewed and released without the read.
///
/// How soon a dead holder's lease is taken over: its ttl·(1+ρ) after its last renewal was *seen*. A watch
/// sees it when it is written; a candidate that does not watch sees it at its next look, up to one ttl later.
pub struct ObservedStore<S, C> {
    store: S,
    observer: Arc<Observer<C>>,
}

/// What the requests and the watches of one process share.
pub(super) struct Observer<C> {
    clock: C,
    clock_rate_error_ppm: u32,
    sightings: Mutex<Sightings>,
}

impl<S: CompareAndSwap, C: Clock> ObservedStore<S, C> {
    /// The lease store over `store`. Does no I/O.
    ///
    /// `clock_rate_error_ppm` is ρ, as in [`Sightings::new`]: what every candidate's timing assumes, or more.
    #[must_use]
    pub fn new(store: S, clock: C, clock_rate_error_ppm: u32) -> Self {
        Self {
            store,
            observer: Arc::new(Observer {
                clock,
                clock_rate_error_ppm,
                sightings: Mutex::new(Sightings::new(clock_rate_error_ppm)),
            }),
        }
    }

    /// Another over the same records, that shares what this one has seen: for requests that are to have a
    /// connection of their own. Does no I/O.
    #[must_use]
    pub fn beside<Other: CompareAndSwap>(&self, store: Other) -> ObservedStore<Other, C> {
        ObservedStore {
            store,
            observer: Arc::clone(&self.observer),
        }
    }

    async fn drive<Request: Decide>(
        &self,
        mut round: Round<Request>,
    ) -> Result<Request::Answered, StoreError> {
        loop {
            let response = match round.next() {
                Need::Read(name) => Response::Read(self.store.read(&name, Request::FLOOR).await),
                Need::Create(name, entry) => Response::Written(self.store.create(&name, &entry).await),
                Need::Swap(name, revision, entry) => {
                    Response::Written(self.store.swap(&name, &revision, &entry).await)
                }
                Need::Done(answer) => return answer,
            };
            self.observer
                .observe(|now, sightings| round.take_in(now, response, sightings));
        }
    }

    fn over_last_written<Request: Decide>(&self, round: Round<Request>) -> Round<Request> {
        self.observer
            .observe(|now, sightings| round.over_last_written(now, sightings))
    }

    fn check(&self, name: &LeaseName, ttl: Ttl) -> Result<(), StoreError> {
        let StoreTraits { ttl_min, ttl_max, .. } = self.store.traits();
        if (ttl_min..=ttl_max).contains(&ttl) {
            return Ok(());
        }
        let message = format!(
            "ttl {ttl} of lease \"{name}\" is outside {ttl_min} to {ttl_max}, which this store keeps to"
        );
        Err(StoreError::not_applied(Fault::Invalid, message))
    }
}

impl<C: Clock> Observer<C> {
    /// Looks at the clock, now that an answer has arrived, and takes in what it showed.
    pub(super) fn observe<T>(&self, take_in: impl FnOnce(Moment, &mut Sightings) -> T) -> T {
        let mut sightings = self.sightings();
        // Under the lock: two answers are taken in by one order of moments.
        take_in(self.clock.now(), &mut sightings)
    }

    fn sightings(&self) -> MutexGuard<'_, Sightings> {
        // What was seen stays true, whoever panicked.
        self.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: CompareAndSwap, C: Clock + 'static> LeaseStore for ObservedStore<S, C> {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            timekeeper: Timekeeper::Observer,
            ..self.store.traits()
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            self.check(&request.name, request.ttl)?;
            self.drive(Round::acquire(request.clone())).await
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        let renew = move |request: &'a Renew| async move {
            self.check(&request.name, request.ttl)?;
            self.drive(self.over_last_written(Round::renew(request.clone())))
                .await
        };
        Box::pin(together(requests.iter().map(renew)))
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        let release = |request: &Release| self.drive(self.over_last_written(Round::release(request.clone())));
        Box::pin(together(requests.iter().map(release)))
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        Box::pin(self.drive(Round::ask(request.clone())))
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(self.drive(Round::get(name.clone())))
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(async move {
            page.check()?;
            let records = self.store.list(page).await?;
            Ok(self.observer.observe(|now, sightings| LeasePage {
                leases: records
                    .records
                    .into_iter()
                    .map(|record| listed(now, record, sightings))
                    .collect(),
                next: records.next,
            }))
        })
    }

    fn watch<'a>(&'a self, scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            let records = self.store.watch(scope).await?;
            let watch = ObservedWatch::new(records, Arc::clone(&self.observer));
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async {
            let mut findings = self.store.examine().await?;
            findings.push(Finding {
                subject: "observed time".to_owned(),
                verdict: Verdict::Good,
                detail: format!(
                    "the store judges no expiry: a lease is free once its record was seen unchanged for its ttl \
                     and {} ppm; {} records are being observed",
                    self.observer.clock_rate_error_ppm,
                    self.observer.sightings().len()
                ),
                repair: None,
            });
            Ok(findings)
        })
    }

    /// Its requests run where they are awaited.
    fn run_beside(&self, work: Work) -> Result<(), Work> {
        Err(work)
    }
}

fn listed(now: Moment, record: ListedRecord, sightings: &mut Sightings) -> Listed {
    match record {
        ListedRecord::Record { name, version } => {
            sightings.glance(now, &name, &version);
            Listed::Lease(sightings.lease(now, &name, &version))
        }
        ListedRecord::Unreadable { key, error } => Listed::Unreadable { key, error },
    }
}
