//! A store whose requests run on a thread of its own.

use crate::thread::{OwnThread, System};
use std::future::Future;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Finding, Interest, Lease, LeaseName, LeasePage, LeaseStore, Page,
    Release, Released, Renew, Renewed, Scope, StoreError, StoreTraits, Watch, Work,
};

/// What a store asks of its system. Each is a method of [`LeaseStore`], but for where it runs.
pub trait Requests: Send + Sync + 'static {
    /// As [`LeaseStore::traits`].
    fn traits(&self) -> StoreTraits;
    /// As [`LeaseStore::acquire`].
    fn acquire(
        self: &Arc<Self>,
        request: &Acquire,
    ) -> impl Future<Output = Result<Acquired, StoreError>> + Send;
    /// As [`LeaseStore::renew`].
    fn renew(
        self: &Arc<Self>,
        requests: &[Renew],
    ) -> impl Future<Output = Vec<Result<Renewed, StoreError>>> + Send;
    /// As [`LeaseStore::release`].
    fn release(
        self: &Arc<Self>,
        requests: &[Release],
    ) -> impl Future<Output = Vec<Result<Released, StoreError>>> + Send;
    /// As [`LeaseStore::ask`].
    fn ask(self: &Arc<Self>, request: &Ask) -> impl Future<Output = Result<Asked, StoreError>> + Send;
    /// As [`LeaseStore::get`].
    fn get(
        self: &Arc<Self>,
        name: &LeaseName,
    ) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send;
    /// As [`LeaseStore::list`].
    fn list(self: &Arc<Self>, page: &Page) -> impl Future<Output = Result<LeasePage, StoreError>> + Send;
    /// As [`LeaseStore::examine`].
    fn examine(self: &Arc<Self>) -> impl Future<Output = Result<Vec<Finding>, StoreError>> + Send;
    /// As [`LeaseStore::watch`], but awaited where the user is; what reads the watch runs on `thread`.
    fn watch(
        self: &Arc<Self>,
        thread: &OwnThread,
        scope: Scope,
        interest: Interest,
    ) -> impl Future<Output = Result<Box<dyn Watch>, StoreError>> + Send;
}

/// [`Requests`] on a thread of their own. Dropping it ends the thread, and waits for nothing.
pub struct Remote<S: Requests> {
    /// `None` only while it is dropped.
    site: Option<Arc<S>>,
    thread: Arc<OwnThread>,
}

impl<S: Requests> Remote<S> {
    /// Starts a thread, and opens the store on it.
    ///
    /// # Errors
    /// Of `open`, and [`Fault::Internal`](tenure_core::Fault::Internal) where the thread cannot be started.
    pub async fn open(
        system: System,
        open: impl Future<Output = Result<S, StoreError>> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let thread = OwnThread::start(system)?;
        let site = thread.run(open).await??;
        Ok(Self::new(Arc::new(site), Arc::new(thread)))
    }

    /// A store over a thread that runs already.
    #[must_use]
    pub fn new(site: Arc<S>, thread: Arc<OwnThread>) -> Self {
        let site = Some(site);
        Self { site, thread }
    }

    /// What the requests go to.
    ///
    /// # Panics
    /// Never: it is there until this is dropped.
    #[must_use]
    pub fn site(&self) -> &Arc<S> {
        self.site.as_ref().expect("the site is taken by drop alone")
    }

    /// The thread of the requests.
    #[must_use]
    pub fn thread(&self) -> &Arc<OwnThread> {
        &self.thread
    }
}

impl<S: Requests> Drop for Remote<S> {
    fn drop(&mut self) {
        if let Some(site) = self.site.take() {
            self.thread.drop_there(site);
        }
    }
}

impl<S: Requests> LeaseStore for Remote<S> {
    fn traits(&self) -> StoreTraits {
        self.site().traits()
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        let (site, request) = (Arc::clone(self.site()), request.clone());
        let asking = async move { site.acquire(&request).await };
        Box::pin(async move { self.thread.run(asking).await? })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        let (site, owned) = (Arc::clone(self.site()), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { site.renew(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        let (site, owned) = (Arc::clone(self.site()), requests.to_vec());
        Box::pin(async move {
            let answers = self.thread.run(async move { site.release(&owned).await }).await;
            answers.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let (site, request) = (Arc::clone(self.site()), request.clone());
        Box::pin(async move { self.thread.run(async move { site.ask(&request).await }).await? })
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        let (site, name) = (Arc::clone(self.site()), name.clone());
        Box::pin(async move { self.thread.run(async move { site.get(&name).await }).await? })
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        let (site, page) = (Arc::clone(self.site()), page.clone());
        Box::pin(async move { self.thread.run(async move { site.list(&page).await }).await? })
    }

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(self.site().watch(&self.thread, scope.clone(), interest))
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        let site = Arc::clone(self.site());
        Box::pin(async move { self.thread.run(async move { site.examine().await }).await? })
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        self.thread.leave(work);
        Ok(())
    }
}

/// Implements [`LeaseStore`] for a public type whose only field is a [`Remote`].
#[macro_export]
macro_rules! lease_store {
    ($store:ty) => {
        impl $crate::tenure_core::LeaseStore for $store {
            fn traits(&self) -> $crate::tenure_core::StoreTraits {
                self.0.traits()
            }

            fn acquire<'a>(
                &'a self,
                request: &'a $crate::tenure_core::Acquire,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::Acquired, $crate::tenure_core::StoreError>,
            > {
                self.0.acquire(request)
            }

            fn renew<'a>(
                &'a self,
                requests: &'a [$crate::tenure_core::Renew],
            ) -> $crate::tenure_core::Answer<
                'a,
                Vec<Result<$crate::tenure_core::Renewed, $crate::tenure_core::StoreError>>,
            > {
                self.0.renew(requests)
            }

            fn release<'a>(
                &'a self,
                requests: &'a [$crate::tenure_core::Release],
            ) -> $crate::tenure_core::Answer<
                'a,
                Vec<Result<$crate::tenure_core::Released, $crate::tenure_core::StoreError>>,
            > {
                self.0.release(requests)
            }

            fn ask<'a>(
                &'a self,
                request: &'a $crate::tenure_core::Ask,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::Asked, $crate::tenure_core::StoreError>,
            > {
                self.0.ask(request)
            }

            fn get<'a>(
                &'a self,
                name: &'a $crate::tenure_core::LeaseName,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<Option<$crate::tenure_core::Lease>, $crate::tenure_core::StoreError>,
            > {
                self.0.get(name)
            }

            fn list<'a>(
                &'a self,
                page: &'a $crate::tenure_core::Page,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<$crate::tenure_core::LeasePage, $crate::tenure_core::StoreError>,
            > {
                self.0.list(page)
            }

            fn watch<'a>(
                &'a self,
                scope: &'a $crate::tenure_core::Scope,
                interest: $crate::tenure_core::Interest,
            ) -> $crate::tenure_core::Answer<
                'a,
                Result<Box<dyn $crate::tenure_core::Watch>, $crate::tenure_core::StoreError>,
            > {
                self.0.watch(scope, interest)
            }

            fn examine(
                &self,
            ) -> $crate::tenure_core::Answer<
                '_,
                Result<Vec<$crate::tenure_core::Finding>, $crate::tenure_core::StoreError>,
            > {
                self.0.examine()
            }

            fn run_beside(&self, work: $crate::tenure_core::Work) -> Result<(), $crate::tenure_core::Work> {
                self.0.run_beside(work)
            }
        }
    };
}
