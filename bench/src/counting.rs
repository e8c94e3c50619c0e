//! A store that counts what it is asked.

use std::sync::atomic::{AtomicU32, Ordering};
use tenure::contract::{
    Acquire, Acquired, Answer, Ask, Asked, Finding, Interest, Lease, LeasePage, Page, Release, Released,
    Renew, Renewed, Scope, StoreTraits, Watch, Work,
};
use tenure::{LeaseName, LeaseStore, SharedStore, StoreError};

/// Passes every call on to a real store, and counts those that are requests.
pub struct Counting {
    inner: SharedStore,
    requests: AtomicU32,
}

impl Counting {
    pub fn new(inner: SharedStore) -> Self {
        Self {
            inner,
            requests: AtomicU32::new(0),
        }
    }

    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }

    fn count(&self) -> &dyn LeaseStore {
        self.requests.fetch_add(1, Ordering::SeqCst);
        &*self.inner
    }
}

impl LeaseStore for Counting {
    fn traits(&self) -> StoreTraits {
        self.inner.traits()
    }
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        self.count().acquire(request)
    }
    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        self.count().renew(requests)
    }
    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        self.count().release(requests)
    }
    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        self.count().ask(request)
    }
    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        self.count().get(name)
    }
    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        self.count().list(page)
    }
    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.inner.watch(scope, interest)
    }
    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        self.inner.examine()
    }
    fn run_beside(&self, work: Work) -> Result<(), Work> {
        self.inner.run_beside(work)
    }
}
