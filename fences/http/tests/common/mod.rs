//! A real fence in a file, for whatever stands behind it.

use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::{
    Answer, Bump, Claimed, Cursor, Fence, FenceError, FencingToken, LeaseName, Leases, Mark, MarkPage,
    ResourceName, Term,
};
use tenure_http::{FenceLayer, FencingHeader, Gate, Protection};
use tenure_sqlite::SqliteFence;

/// Long, as a loaded machine may need it.
pub const LONG: Duration = Duration::from_secs(30);
/// A patience that is to run out, and a claim within it: one is several writes to a disk that others may keep
/// busy.
pub const SHORT: Duration = Duration::from_secs(3);
/// Long enough for what must not happen to happen.
pub const A_WHILE: Duration = Duration::from_millis(80);

pub struct Marks {
    folder: TempDir,
}

impl Marks {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let marks = Self { folder };
        SqliteFence::install(&marks.connection()).unwrap();
        marks
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("marks.db")
    }

    pub fn connection(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    pub fn fence(&self) -> SqliteFence {
        SqliteFence::new(self.file(), Leases::Here).unwrap()
    }

    pub fn gate(&self) -> Gate {
        Gate::new(Arc::new(self.fence())).wait_at_most(LONG)
    }
}

pub fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub fn term(number: u64) -> Term {
    Term::new(nightly(), token(number))
}

pub fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

pub fn nightly() -> LeaseName {
    LeaseName::new("nightly").unwrap()
}

pub fn protection() -> Protection {
    Protection {
        resource: ledger(),
        lease: nightly(),
    }
}

/// Each path is a resource of its own.
pub fn by_path(marks: &Marks) -> FenceLayer {
    FenceLayer::by(marks.gate(), |parts| {
        let resource = ResourceName::new(parts.uri.path().trim_matches('/'))?;
        Ok(Protection {
            resource,
            lease: nightly(),
        })
    })
}

pub fn presented(number: u64) -> http::HeaderValue {
    FencingHeader(term(number)).value()
}

/// A fence that counts what it is asked and told.
pub struct Counting {
    inner: SqliteFence,
    pub claims: AtomicUsize,
    pub noted: AtomicUsize,
}

impl Counting {
    pub fn over(inner: SqliteFence) -> Self {
        Self {
            inner,
            claims: AtomicUsize::new(0),
            noted: AtomicUsize::new(0),
        }
    }
}

impl Fence for Counting {
    fn claim<'a>(
        &'a self,
        resource: &'a ResourceName,
        term: &'a Term,
    ) -> Answer<'a, Result<Claimed, FenceError>> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        self.inner.claim(resource, term)
    }
    fn check<'a>(&'a self, resource: &'a ResourceName, term: &'a Term) -> Answer<'a, Result<(), FenceError>> {
        self.inner.check(resource, term)
    }
    fn mark<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Option<Mark>, FenceError>> {
        self.inner.mark(resource)
    }
    fn marks<'a>(&'a self, after: Option<&'a Cursor>) -> Answer<'a, Result<MarkPage, FenceError>> {
        self.inner.marks(after)
    }
    fn bump<'a>(&'a self, bump: &'a Bump) -> Answer<'a, Result<Mark, FenceError>> {
        self.inner.bump(bump)
    }
    fn count_refusal(&self, refusal: &FenceError) {
        self.noted.fetch_add(1, Ordering::SeqCst);
        self.inner.count_refusal(refusal);
    }
    fn note_refusals(&self) -> Answer<'_, ()> {
        self.inner.note_refusals()
    }
}
