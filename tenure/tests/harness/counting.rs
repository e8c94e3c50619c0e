//! A store that counts what it is asked to extend.

use std::sync::atomic::{AtomicU32, Ordering};
use tenure::core::{
    Acquire, Acquired, Answer, Ask, Asked, Finding, Lease, LeasePage, Page, Release, Released, Renew,
    Renewed, Scope, StoreTraits, Watch,
};
use tenure::{LeaseName, LeaseStore, SharedStore, StoreError};

/// Passes every call on to a real store, and counts the calls that extend.
pub struct Counting {
    pub inner: SharedStore,
    renewals: AtomicU32,
}

impl Counting {
    pub fn new(inner: SharedStore) -> Self {
        Self {
            inner,
            renewals: AtomicU32::new(0),
        }
    }

    pub fn renewals(&self) -> u32 {
        self.renewals.load(Ordering::SeqCst)
    }
}

impl LeaseStore for Counting {
    fn traits(&self) -> StoreTraits {
        self.inner.traits()
    }
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        self.inner.acquire(request)
    }
    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        self.inner.renew(requests)
    }
    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        self.inner.release(requests)
    }
    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        self.inner.ask(request)
    }
    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        self.inner.get(name)
    }
    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        self.inner.list(page)
    }
    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.inner.watch(scope)
    }
    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        self.inner.examine()
    }
}
