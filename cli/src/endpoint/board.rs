//! What the pages tell of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure::clock_now;
use tenure::core::{Lease, Moment};
use tenure::{Event, FencingToken, LeaseName, SharedStore, StoreError};
use tokio::sync::watch;

/// How old an answer of the store may be when it is shown: so often at most is the store asked for whoever looks.
const FRESH: Duration = Duration::from_secs(1);

/// How long the store may take.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// What is known of one lease and of this process's part in it.
pub(crate) struct Board {
    pub(super) name: LeaseName,
    pub(super) candidate: String,
    store: SharedStore,
    term: Mutex<Option<(FencingToken, Moment)>>,
    works: watch::Sender<bool>,
    looked: tokio::sync::Mutex<Option<Look>>,
}

/// What the store said of the lease, and when it was asked.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) asked_at: Moment,
    pub(super) found: Result<Option<Lease>, StoreError>,
}

/// Whether this process does what it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Health {
    /// It leads, and has so long left.
    Leads(FencingToken, Duration),
    /// It does not lead, and nothing of it works.
    Idle,
    /// It leads no more, and its command still runs.
    WorksWithoutTerm,
}

impl Board {
    pub(crate) fn new(name: LeaseName, candidate: String, store: SharedStore) -> Self {
        Self {
            name,
            candidate,
            store,
            term: Mutex::new(None),
            works: watch::Sender::new(false),
            looked: tokio::sync::Mutex::new(None),
        }
    }

    /// The command runs from now on, or is gone.
    pub(crate) fn works(&self, works: bool) {
        self.works.send_replace(works);
    }

    /// The lease that this is about.
    pub(crate) fn lease(&self) -> &str {
        self.name.as_str()
    }

    /// Returns when this process does the work of a term; at once, if it does.
    pub(crate) async fn until_works(&self) {
        // It never closes: its other end is here.
        let _ = self.works.subscribe().wait_for(|works| *works).await;
    }

    pub(super) fn take_in(&self, event: &Event) {
        match event {
            Event::Acquired { grant, until, .. } => *self.term() = Some((grant.token, *until)),
            Event::Renewed { token, until, .. } => *self.term() = Some((*token, *until)),
            Event::Ended { .. } => *self.term() = None,
            _ => {}
        }
    }

    fn term(&self) -> MutexGuard<'_, Option<(FencingToken, Moment)>> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn health(&self) -> Health {
        let now = clock_now();
        match *self.term() {
            Some((token, until)) if now < until => Health::Leads(token, until.since(now)),
            _ if *self.works.borrow() => Health::WorksWithoutTerm,
            _ => Health::Idle,
        }
    }

    /// Who leads, as the store says: no older than a second.
    pub(super) async fn look(&self) -> Look {
        // One asks, and who comes meanwhile gets the same answer.
        let mut looked = self.looked.lock().await;
        let asked_at = clock_now();
        if let Some(look) = looked
            .as_ref()
            .filter(|look| asked_at.since(look.asked_at) < FRESH)
        {
            return look.clone();
        }
        let found = tokio::time::timeout(LOOK_TIME_MAX, self.store.get(&self.name)).await;
        let found = found.unwrap_or_else(|_late| {
            let message = format!(
                "lease \"{}\": the store did not answer within {LOOK_TIME_MAX:?}",
                self.name
            );
            Err(StoreError::not_applied(tenure::core::Fault::TimedOut, message))
        });
        let look = Look { asked_at, found };
        *looked = Some(look.clone());
        look
    }
}
