use crate::Contender;
use crate::slowness::Slowness;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{
    Acquire, Acquired, Asked, FencingToken, Grant, Lease, LeaseName, LeasePage, LeaseStore, Listed,
    Occupancy, Page, Release, Released, Renew, Renewed, Selection, StoreError,
};
use tokio::time::{Instant, sleep};

/// How long a case waits for something that a store must do, on a loaded machine, before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Pause between two looks while waiting.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(15);

/// One client of the storage under test, whose requests must be answered: an error fails the case.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn LeaseStore>,
    label: &'static str,
    slowness: Slowness,
}

impl Client {
    pub(crate) fn new(store: Arc<dyn LeaseStore>, label: &'static str, slowness: Slowness) -> Self {
        Self {
            store,
            label,
            slowness,
        }
    }

    /// The store itself, for cases about errors.
    #[must_use]
    pub fn store(&self) -> &dyn LeaseStore {
        &*self.store
    }

    /// Asks for a lease.
    pub async fn acquire(&self, request: &Acquire) -> Acquired {
        self.answered("acquire", &request.name, self.store.acquire(request))
            .await
    }

    /// Takes a lease that is free, or the same term again.
    pub async fn take(&self, contender: &Contender) -> Grant {
        match self.acquire(&contender.acquire()).await {
            Acquired::Granted(grant) => grant,
            other @ (Acquired::Held(_) | Acquired::Superseded) => {
                panic!("{contender} should have been granted the lease, but got {other:?}")
            }
        }
    }

    /// Asks for a lease that another holds, and answers the record that was shown.
    pub async fn be_refused(&self, contender: &Contender) -> Lease {
        match self.acquire(&contender.acquire()).await {
            Acquired::Held(lease) => lease,
            other @ (Acquired::Granted(_) | Acquired::Superseded) => {
                panic!("{contender} should have been told who holds the lease, but got {other:?}")
            }
        }
    }

    /// Asks for a lease too late.
    pub async fn be_superseded(&self, contender: &Contender) {
        let answer = self.acquire(&contender.acquire()).await;
        assert_eq!(answer, Acquired::Superseded, "for {contender}");
    }

    /// Extends one lease; the error itself.
    pub async fn try_renew(&self, request: &Renew) -> Result<Renewed, StoreError> {
        only(self.store.renew(std::slice::from_ref(request)).await)
    }

    /// Extends one lease.
    pub async fn renew(&self, request: &Renew) -> Renewed {
        self.answered("renew", &request.name, self.try_renew(request))
            .await
    }

    /// Tries to extend a lease of a term that is over, and answers the record that was shown.
    pub async fn lose(&self, request: &Renew) -> Option<Lease> {
        match self.renew(request).await {
            Renewed::Lost(now) => now.map(|lease| *lease),
            extended @ Renewed::Extended { .. } => {
                panic!("{request:?} should have been lost, but got {extended:?}")
            }
        }
    }

    /// Extends a lease of a term that goes on.
    pub async fn extend(&self, request: &Renew) {
        let answer = self.renew(request).await;
        assert!(
            matches!(answer, Renewed::Extended { .. }),
            "{request:?} should have extended, but got {answer:?}"
        );
    }

    /// Gives one lease back; the error itself.
    pub async fn try_release(&self, request: &Release) -> Result<Released, StoreError> {
        only(self.store.release(std::slice::from_ref(request)).await)
    }

    /// Gives one lease back.
    pub async fn release(&self, request: &Release) -> Released {
        self.answered("release", &request.name, self.try_release(request))
            .await
    }

    /// Gives back a lease of the very term.
    pub async fn vacate(&self, request: &Release) {
        let answer = self.release(request).await;
        assert_eq!(answer, Released::Vacated, "for {request:?}");
    }

    /// Tries to give back what is another's, and answers the record that was shown.
    pub async fn fail_to_release(&self, request: &Release) -> Option<Lease> {
        match self.release(request).await {
            Released::NotYours(now) => now.map(|lease| *lease),
            Released::Vacated => panic!("{request:?} should have been answered NotYours, but vacated"),
        }
    }

    /// Asks the holder of a term to step down.
    pub async fn ask(&self, name: &LeaseName, token: FencingToken) -> Asked {
        let request = tenure_core::Ask {
            name: name.clone(),
            token,
        };
        self.answered("ask", name, self.store.ask(&request)).await
    }

    /// Reads a lease.
    pub async fn get(&self, name: &LeaseName) -> Option<Lease> {
        self.answered("get", name, self.store.get(name)).await
    }

    /// Reads a lease whose record must exist.
    pub async fn lease(&self, name: &LeaseName) -> Lease {
        let lease = self.get(name).await;
        lease.unwrap_or_else(|| panic!("\"{name}\" should have a record, but get answers None"))
    }

    /// Reads one page.
    pub async fn page(&self, page: &Page) -> LeasePage {
        self.answered("list", page, self.store.list(page)).await
    }

    /// Reads every record under a prefix, page by page.
    pub async fn list(&self, prefix: &str, limit: u16) -> Vec<Listed> {
        self.all_pages(Page::first(prefix, limit)).await
    }

    /// Reads what is held under a prefix, page by page.
    pub async fn list_held(&self, prefix: &str, limit: u16) -> Vec<Listed> {
        let selection = Selection::Held;
        self.all_pages(Page {
            selection,
            ..Page::first(prefix, limit)
        })
        .await
    }

    async fn all_pages(&self, mut page: Page) -> Vec<Listed> {
        /// A store that keeps answering a next page would hold a case for ever.
        const PAGES_MAX: usize = 2_000;
        let mut all = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = self.page(&page).await;
            assert!(
                answer.leases.len() <= usize::from(page.limit),
                "a page of at most {} had {} records",
                page.limit,
                answer.leases.len()
            );
            all.extend(answer.leases);
            let Some(next) = answer.next else { return all };
            page.after = Some(next);
        }
        panic!("listing \"{}\" did not end within {PAGES_MAX} pages", page.prefix)
    }

    /// Waits until the record says that the lease may be taken.
    pub async fn wait_until_free(&self, name: &LeaseName) {
        let began = Instant::now();
        loop {
            let lease = self.lease(name).await;
            if lease.occupancy() != Occupancy::Held {
                return;
            }
            let patience = lease.ttl.duration() + PATIENCE;
            assert!(
                began.elapsed() < patience,
                "\"{name}\" should have expired within {patience:?}, but {:?} remain",
                lease.remaining
            );
            sleep(LOOK_EVERY.min(lease.remaining + Duration::from_millis(1))).await;
        }
    }

    /// The answer to what is done with this lease, or this page.
    pub(crate) async fn answered<T>(
        &self,
        what: &str,
        which: &(impl Debug + ?Sized),
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> T {
        let asked_at = Instant::now();
        answer.await.unwrap_or_else(|error| {
            self.slowness.note(&error, asked_at.elapsed());
            panic!(
                "{what} {which:?} through the {} client failed: {:?}, {:?}: {}",
                self.label, error.fault, error.certainty, error.message
            )
        })
    }
}

fn only<T>(mut answers: Vec<T>) -> T {
    assert_eq!(answers.len(), 1, "one request must have one answer");
    answers.pop().expect("one answer, counted above")
}
