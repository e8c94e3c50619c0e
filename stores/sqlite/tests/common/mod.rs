//! What the tests of this folder share.

pub mod child;

use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::{
    Acquire, Acquired, Attempt, Candidate, CandidateId, FencingToken, Grant, Incarnation, Lease, LeaseName,
    LeaseStore, Note, Release, Renew, Ttl,
};
use tenure_sqlite::SqliteStore;

/// Longest that a test waits for what must come: far beyond what it takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with one store file in it, gone with the value.
pub struct Scratch {
    directory: TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// In memory, for a test whose subject is not the disk: nothing waits for one.
    pub fn in_memory() -> Self {
        Self::within(Path::new("/dev/shm"))
    }

    fn within(place: &Path) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("tenure-sqlite-")
            .tempdir_in(place)
            .unwrap();
        Self { directory }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(&self) -> PathBuf {
        self.directory().join("leases.db")
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(self.file()).unwrap()
    }

    /// The file by its own means, behind the store's back.
    pub fn raw(&self) -> Connection {
        let connection = Connection::open(self.file()).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection
    }

    pub fn sql(&self, statement: &str) {
        self.raw().execute_batch(statement).unwrap();
    }
}

/// One process that asks for leases.
#[derive(Clone)]
pub struct Asker {
    pub candidate: Candidate,
    pub attempt: Attempt,
    pub ttl: Ttl,
}

impl Asker {
    pub fn new(id: &str) -> Self {
        let bits = id
            .bytes()
            .fold(7_u128, |bits, byte| bits * 257 + u128::from(byte));
        let bits = bits ^ (u128::from(std::process::id()) << 64);
        Self {
            candidate: Candidate {
                id: CandidateId::new(id).unwrap(),
                incarnation: Incarnation::from_bits(bits),
            },
            attempt: Attempt::FIRST,
            ttl: Ttl::from_secs(30).unwrap(),
        }
    }

    pub fn ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.ttl = Ttl::from_millis(ttl_ms).unwrap();
        self
    }

    pub fn next_attempt(mut self) -> Self {
        self.attempt = self.attempt.next();
        self
    }

    pub fn acquire(&self, lease: &str) -> Acquire {
        Acquire {
            name: name(lease),
            candidate: self.candidate.clone(),
            attempt: self.attempt,
            ttl: self.ttl,
            note: Note::new("a test").unwrap(),
        }
    }

    pub fn renew(&self, lease: &str, token: FencingToken) -> Renew {
        Renew {
            name: name(lease),
            incarnation: self.candidate.incarnation,
            token,
            attempt: self.attempt,
            ttl: self.ttl,
        }
    }

    pub fn release(&self, lease: &str, token: FencingToken) -> Release {
        Release {
            name: name(lease),
            incarnation: self.candidate.incarnation,
            token,
            attempt: self.attempt,
        }
    }
}

pub fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

pub async fn grant(store: &dyn LeaseStore, asker: &Asker, lease: &str) -> Grant {
    match store.acquire(&asker.acquire(lease)).await {
        Ok(Acquired::Granted(grant)) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

pub async fn held(store: &dyn LeaseStore, asker: &Asker, lease: &str) -> Lease {
    match store.acquire(&asker.acquire(lease)).await {
        Ok(Acquired::Held(lease)) => lease,
        other => panic!("not held: {other:?}"),
    }
}
