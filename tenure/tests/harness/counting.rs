//! A store that counts what it is asked for.

use super::pass_on;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure::contract::{
    Acquire, Acquired, Answer, Interest, Lease, LeasePage, Page, Release, Released, Renew, Renewed, Scope,
    Watch,
};
use tenure::{LeaseName, LeaseStore, SharedStore, StoreError};
use tokio::sync::Semaphore;

/// Passes every call on to a real store, and counts those that take, extend, release, look and list.
pub struct Counting {
    pub inner: SharedStore,
    acquisitions: AtomicU32,
    renewals: AtomicU32,
    releases: AtomicU32,
    looks: AtomicU32,
    pages: AtomicU32,
    /// Watches that may be started; more wait.
    pub watches: Semaphore,
    /// Acquisitions that may go on to the store; more wait.
    pub acquires: Semaphore,
    /// Calls that release which may go on to the store; more wait.
    pub releasing: Semaphore,
    /// How long the store takes to look, to list and to let take.
    pub delay: Duration,
    /// The last of what it has listed.
    listed: Mutex<Option<LeasePage>>,
}

impl Counting {
    pub fn new(inner: SharedStore) -> Self {
        Self {
            inner,
            acquisitions: AtomicU32::new(0),
            renewals: AtomicU32::new(0),
            releases: AtomicU32::new(0),
            looks: AtomicU32::new(0),
            pages: AtomicU32::new(0),
            watches: Semaphore::new(Semaphore::MAX_PERMITS),
            acquires: Semaphore::new(Semaphore::MAX_PERMITS),
            releasing: Semaphore::new(Semaphore::MAX_PERMITS),
            delay: Duration::ZERO,
            listed: Mutex::new(None),
        }
    }

    pub fn acquisitions(&self) -> u32 {
        self.acquisitions.load(Ordering::SeqCst)
    }

    pub fn releases(&self) -> u32 {
        self.releases.load(Ordering::SeqCst)
    }

    /// How often one lease was looked at.
    pub fn looks(&self) -> u32 {
        self.looks.load(Ordering::SeqCst)
    }

    /// How many pages were asked for.
    pub fn pages(&self) -> u32 {
        self.pages.load(Ordering::SeqCst)
    }

    /// The last page that was read, whole or not.
    pub fn listed(&self) -> Option<LeasePage> {
        self.listed.lock().unwrap().clone()
    }

    pub fn renewals(&self) -> u32 {
        self.renewals.load(Ordering::SeqCst)
    }

    async fn page(&self, read: Answer<'_, Result<LeasePage, StoreError>>) -> Result<LeasePage, StoreError> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.delay).await;
        let read = read.await;
        *self.listed.lock().unwrap() = read.clone().ok();
        read
    }
}

impl LeaseStore for Counting {
    pass_on!(traits, ask, examine, run_beside);

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        self.acquisitions.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let permit = self.acquires.acquire().await;
            permit.expect("it is never closed").forget();
            tokio::time::sleep(self.delay).await;
            self.inner.acquire(request).await
        })
    }
    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        self.inner.renew(requests)
    }
    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        self.releases.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let permit = self.releasing.acquire().await;
            permit.expect("it is never closed").forget();
            self.inner.release(requests).await
        })
    }
    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            tokio::time::sleep(self.delay).await;
            self.inner.get(name).await
        })
    }
    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(self.page(self.inner.list(page)))
    }
    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            let permit = self.watches.acquire().await;
            permit.expect("it is never closed").forget();
            self.inner.watch(scope, interest).await
        })
    }
}
