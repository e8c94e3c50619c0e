//! What is watched of a store.

use crate::harness::pass_on;
use std::sync::Mutex;
use tenure::contract::{Answer, Interest, Scope, Watch};
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

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        let noted = match interest {
            Interest::Everything => &self.everything,
            Interest::Ends => &self.ends,
            Interest::EveryEnd => &self.every_end,
        };
        noted.lock().unwrap().push(scope.clone());
        self.inner.watch(scope, interest)
    }
}
