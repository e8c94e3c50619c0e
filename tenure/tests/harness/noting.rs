//! What is watched of a store.

use crate::harness::pass_on;
use std::sync::Mutex;
use tenure::contract::{Answer, Scope, Watch};
use tenure::{LeaseStore, SharedStore, StoreError};

/// A real store that notes what it was asked to watch.
pub struct Noting {
    inner: SharedStore,
    pub everything: Mutex<Vec<Scope>>,
    pub ends: Mutex<Vec<Scope>>,
    pub every_end: Mutex<Vec<Scope>>,
}

impl Noting {
    pub fn over(inner: SharedStore) -> Self {
        Self {
            inner,
            everything: Mutex::default(),
            ends: Mutex::default(),
            every_end: Mutex::default(),
        }
    }
}

impl LeaseStore for Noting {
    pass_on!(
        traits, acquire, renew, release, ask, get, list, examine, run_beside
    );

    fn watch<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.everything.lock().unwrap().push(scope.clone());
        self.inner.watch(scope)
    }
    fn watch_ends<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.ends.lock().unwrap().push(scope.clone());
        self.inner.watch_ends(scope)
    }
    fn watch_every_end<'a>(&'a self, scope: &'a Scope) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        self.every_end.lock().unwrap().push(scope.clone());
        self.inner.watch_every_end(scope)
    }
}
