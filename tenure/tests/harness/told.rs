//! A store whose watches are a test's.

use crate::harness::pass_on;
use std::sync::{Arc, Mutex, mpsc as blocking};
use std::time::Duration;
use tenure::contract::{
    Acquire, Acquired, Answer, Fault, Interest, Scope, StoreTraits, Watch, WatchEvent, WatchSource,
};
use tenure::{LeaseName, LeaseStore, SharedStore, StoreError};
use tenure_testkit::eventually_async;
use tokio::sync::mpsc;

/// As of a store that wakes.
pub fn pushing(store: &SharedStore) -> StoreTraits {
    StoreTraits {
        watch: WatchSource::Push,
        ..store.traits()
    }
}

/// A real store whose watches say what a test has them say, and one of whose attempts fails when the test
/// lets it.
pub struct Told {
    inner: SharedStore,
    /// Hints for whoever watches last, who keeps its end.
    hints: Mutex<Option<mpsc::Sender<WatchEvent>>>,
    /// Says that the attempt has begun, and waits until it is to fail; the thread of the manager is held up
    /// meanwhile.
    pub attempt: Mutex<Option<(blocking::Sender<()>, blocking::Receiver<()>)>>,
    /// Names that were attempted.
    attempted: Mutex<Vec<LeaseName>>,
}

impl Told {
    pub fn over(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self {
            inner,
            hints: Mutex::default(),
            attempt: Mutex::default(),
            attempted: Mutex::default(),
        })
    }

    pub fn attempts(&self, name: &str) -> usize {
        let attempted = self.attempted.lock().unwrap();
        attempted.iter().filter(|tried| tried.as_str() == name).count()
    }

    /// Who tells the next that watches.
    pub async fn teller(&self) -> mpsc::Sender<WatchEvent> {
        let is_watched = || async { self.hints.lock().unwrap().is_some() };
        eventually_async(Duration::from_secs(30), "a watch", is_watched).await;
        self.hints.lock().unwrap().take().unwrap()
    }
}

impl LeaseStore for Told {
    pass_on!(renew, release, ask, get, list, examine, run_beside);

    fn traits(&self) -> StoreTraits {
        pushing(&self.inner)
    }
    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        self.attempted.lock().unwrap().push(request.name.clone());
        let Some((begun, failing)) = self.attempt.lock().unwrap().take() else {
            return self.inner.acquire(request);
        };
        begun.send(()).unwrap();
        failing.recv().unwrap();
        let failure = StoreError::not_applied(Fault::Busy, "told to fail");
        Box::pin(std::future::ready(Err(failure)))
    }
    fn watch<'a>(&'a self, _scope: &'a Scope, _: Interest) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let (hints, told) = mpsc::channel(1);
        *self.hints.lock().unwrap() = Some(hints);
        Box::pin(std::future::ready(Ok(Box::new(Telling(told)) as Box<dyn Watch>)))
    }
}

struct Telling(mpsc::Receiver<WatchEvent>);

impl Watch for Telling {
    fn next(&mut self) -> Answer<'_, Result<WatchEvent, StoreError>> {
        Box::pin(async {
            match self.0.recv().await {
                Some(event) => Ok(event),
                None => std::future::pending().await,
            }
        })
    }
}
