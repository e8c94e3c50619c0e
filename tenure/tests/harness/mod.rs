//! A real SQLite store in a folder of its own, and candidates for it.
#![allow(dead_code, reason = "with fewer stores a part is not used")]

#[cfg(feature = "metrics")]
pub mod counted;
pub mod counting;
pub mod many;
pub mod noting;
mod passing;
pub mod told;
pub mod turns;

pub(crate) use passing::pass_on;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::contract::Lease;
use tenure::sqlite::SqliteStore;
use tenure::{
    Election, LeaseName, LockManager, LockManagerBuilder, LockTiming, LockTimingOptions, SharedStore, Timing,
    TimingOptions, Ttl,
};

pub struct Site {
    folder: TempDir,
}

impl Site {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// In memory, where a new term does not wait for a disk.
    pub fn in_memory() -> Self {
        Self {
            folder: tempfile::tempdir_in("/dev/shm").unwrap(),
        }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("leases.db")
    }

    /// A handle of its own, as another process would have.
    pub fn store(&self) -> SharedStore {
        Arc::new(SqliteStore::open(self.file()).unwrap())
    }

    /// One whose terms nothing ends within a test: see [`long_timing`].
    pub fn election(&self, candidate: &str) -> Election {
        Self::election_in(self.store(), candidate)
    }

    /// As [`election`](Self::election), in a store of the test's own.
    pub fn election_in(store: SharedStore, candidate: &str) -> Election {
        Self::election_of(store, candidate, long_timing())
    }

    pub fn election_of(store: SharedStore, candidate: &str, timing: Timing) -> Election {
        Election::builder("job", store)
            .candidate(candidate)
            .timing(timing)
            .build()
            .unwrap()
    }

    /// A lock manager with a handle of its own, as another process would have, whose locks nothing ends
    /// within a test: see [`long_timing`].
    pub fn manager(&self, candidate: &str) -> LockManager {
        self.manager_builder(candidate).build().unwrap()
    }

    pub fn manager_builder(&self, candidate: &str) -> LockManagerBuilder {
        LockManager::builder(self.store())
            .candidate(candidate)
            .timing(long_lock_timing())
    }

    /// What the store says of a lease.
    pub async fn record(&self, name: &str) -> Option<Lease> {
        self.store().get(&LeaseName::new(name).unwrap()).await.unwrap()
    }

    /// Holds the write lock of the database until it is dropped: every write of others fails as busy.
    pub fn lock(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.file()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }
}

/// A lease of 3 s, for a test that waits until it has ended: one that is to be held throughout a stall lasts
/// longer.
pub fn timing() -> Timing {
    Timing::of(Ttl::from_secs(3).unwrap())
}

/// As [`timing`], for locks.
pub fn lock_timing() -> LockTiming {
    LockTimingOptions::new(Duration::from_secs(3)).check().unwrap()
}

/// Short enough for a test that waits until it would have ended, and renewed so often that a stall of three
/// seconds does not end it.
pub fn enduring_timing() -> Timing {
    let options = TimingOptions {
        renew_every: Some(Duration::from_millis(500)),
        ..TimingOptions::new(Duration::from_secs(6))
    };
    options.check().unwrap()
}

/// As [`enduring_timing`], for locks.
pub fn enduring_lock_timing() -> LockTiming {
    let options = LockTimingOptions {
        renew_every: Some(Duration::from_millis(500)),
        ..LockTimingOptions::new(Duration::from_secs(6))
    };
    options.check().unwrap()
}

/// A lease of a minute, renewed every 20 s: what happens within [`LONG_BEFORE`] neither its end nor a renewal
/// has brought about. That leaves a machine that stands still for seconds its time, which a bound below the
/// ttl of [`timing`] does not.
pub fn long_timing() -> Timing {
    Timing::of(Ttl::from_secs(60).unwrap())
}

/// As [`long_timing`], for locks.
pub fn long_lock_timing() -> LockTiming {
    LockTimingOptions::new(Duration::from_secs(60)).check().unwrap()
}

/// Long before a lease of [`long_timing`] ends, or is renewed.
pub const LONG_BEFORE: Duration = Duration::from_secs(10);

/// How long a test waits for what must happen, on a machine however busy; a lease of [`long_timing`] lasts
/// longer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Fails a test that hangs.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    within(PATIENCE, what, future).await
}

/// As [`soon`], for what is much work.
pub async fn within<T>(patience: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(patience, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what}: not within {patience:?}"),
    }
}
