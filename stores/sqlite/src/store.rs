//! [`SqliteStore`]: the contract, over one file.

use crate::acquire;
use crate::database::Database;
use crate::examine;
use crate::insistence::insistently;
use crate::listing;
use crate::options::SqliteOptions;
use crate::patience::patiently;
use crate::purge;
use crate::terms::{self, BATCH_MAX, subject};
use crate::trouble::Trouble;
use crate::watch::SqliteWatch;
use std::path::Path;
use std::sync::Arc;
use tenure_core::{
    Acquire, Acquired, Answer, Ask, Asked, Durability, Fault, Finding, Interest, Lease, LeaseName, LeasePage,
    LeasePurge, LeaseStore, Page, Purge, Purged, Release, Released, Renew, Renewed, Scope, StoreError,
    StoreTraits, Timekeeper, TokenSource, Ttl, Watch, WatchSource, Work,
};

/// Leases in one SQLite file, shared by every candidate on one machine.
///
/// A handle is cheap to clone, and clones share its connection. Several handles on one file in one
/// process work, as do any number of processes.
///
/// Its methods run SQLite's short calls on the thread that polls them, and sleep on tokio's timer while
/// another process holds the lock: they must be polled inside a tokio runtime with its timer enabled, and a
/// watch inside one with its I/O driver enabled too. On a thread of its own that is a
/// `tokio::runtime::Builder::new_current_thread().enable_all()`.
#[derive(Clone)]
pub struct SqliteStore {
    database: Arc<Database>,
}

impl SqliteStore {
    /// Opens the file at `path`, making it where it is missing; its directory must exist.
    ///
    /// Blocks, for a few milliseconds as a rule, and for 2 s at most while another process opens or closes
    /// the same file.
    ///
    /// # Errors
    /// Each is one line with the path and the way out, and nothing was changed:
    /// - [`Unreachable`](tenure_core::Fault::Unreachable): the directory does not exist;
    /// - [`ReadOnly`](tenure_core::Fault::ReadOnly): file, directory or file system take no writes;
    /// - [`Forbidden`](tenure_core::Fault::Forbidden): no permission to read;
    /// - [`Unreadable`](tenure_core::Fault::Unreadable): no database, or another program's;
    /// - [`Unsupported`](tenure_core::Fault::Unsupported): a network file system, a file that other paths
    ///   lead to (hard links, a mount of the file itself), or one of a newer version;
    /// - [`Invalid`](tenure_core::Fault::Invalid): no file name, or none that a file can have; a directory, a
    ///   device, a pipe;
    /// - [`Full`](tenure_core::Fault::Full), [`Busy`](tenure_core::Fault::Busy),
    ///   [`Internal`](tenure_core::Fault::Internal): as they say; trying again may help.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteOptions::new(path.as_ref()).open()
    }

    /// Opens what a URL names: see [`SqliteOptions::from_url`].
    ///
    /// # Errors
    /// As [`SqliteOptions::from_url`] and [`open`](Self::open).
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        SqliteOptions::from_url(url)?.open()
    }

    /// Options for the file at `path`, to be opened with [`SqliteOptions::open`].
    pub fn options(path: impl AsRef<Path>) -> SqliteOptions {
        SqliteOptions::new(path.as_ref())
    }

    pub(crate) fn open_with(options: &SqliteOptions) -> Result<Self, StoreError> {
        Ok(Self {
            database: Arc::new(Database::open(options)?),
        })
    }

    /// The file, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.database.path
    }

    /// As [`patiently`](Self::patiently), for what writes.
    async fn insistently<T: Send + 'static>(
        &self,
        subject: impl Fn() -> String + Send,
        step: impl Fn(&Database) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (database, its) = (&self.database, Arc::clone(&self.database));
        let log = || database.log();
        insistently(&database.patience, subject, &database.shown, log, move || {
            step(&its)
        })
        .await
    }

    async fn patiently<T: Send>(
        &self,
        subject: impl Fn() -> String + Send,
        step: impl Fn(&Database) -> Result<T, Trouble> + Send + Sync,
    ) -> Result<T, StoreError> {
        let database = &*self.database;
        patiently(&database.patience, subject, &database.shown, || step(database)).await
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.database.path)
            .finish_non_exhaustive()
    }
}

impl LeaseStore for SqliteStore {
    fn traits(&self) -> StoreTraits {
        StoreTraits {
            kind: "sqlite",
            location: self.database.shown.clone(),
            timekeeper: Timekeeper::Server,
            durability: Durability::Safe,
            watch: if self.database.notifies() {
                WatchSource::Push
            } else {
                WatchSource::Poll
            },
            token_source: TokenSource::CounterAndClock,
            batch_max: BATCH_MAX,
            ttl_min: Ttl::MIN,
            ttl_max: Ttl::MAX,
        }
    }

    fn acquire<'a>(&'a self, request: &'a Acquire) -> Answer<'a, Result<Acquired, StoreError>> {
        Box::pin(async move {
            let subject = || subject(&request.name);
            acquire::acquire(&self.database, subject, request).await
        })
    }

    fn renew<'a>(&'a self, requests: &'a [Renew]) -> Answer<'a, Vec<Result<Renewed, StoreError>>> {
        Box::pin(async move {
            let outcome = self
                .insistently(
                    || batch(requests.first().map(|request| &request.name), requests.len()),
                    {
                        let requests = requests.to_vec();
                        move |database| terms::renew(database, &requests)
                    },
                )
                .await;
            outcome.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn release<'a>(&'a self, requests: &'a [Release]) -> Answer<'a, Vec<Result<Released, StoreError>>> {
        Box::pin(async move {
            let outcome = self
                .insistently(
                    || batch(requests.first().map(|request| &request.name), requests.len()),
                    {
                        let requests = requests.to_vec();
                        move |database| terms::release(database, &requests)
                    },
                )
                .await;
            outcome.unwrap_or_else(|error| vec![Err(error); requests.len()])
        })
    }

    fn ask<'a>(&'a self, request: &'a Ask) -> Answer<'a, Result<Asked, StoreError>> {
        let asked = request.clone();
        Box::pin(self.insistently(
            || subject(&request.name),
            move |database| terms::ask(database, &asked),
        ))
    }

    fn get<'a>(&'a self, name: &'a LeaseName) -> Answer<'a, Result<Option<Lease>, StoreError>> {
        Box::pin(self.patiently(|| subject(name), |database| listing::read_one(database, name)))
    }

    fn list<'a>(&'a self, page: &'a Page) -> Answer<'a, Result<LeasePage, StoreError>> {
        Box::pin(self.patiently(
            || format!("the list of leases \"{}*\"", page.prefix.escape_debug()),
            |database| listing::read_page(database, page),
        ))
    }

    fn watch<'a>(
        &'a self,
        scope: &'a Scope,
        interest: Interest,
    ) -> Answer<'a, Result<Box<dyn Watch>, StoreError>> {
        Box::pin(async move {
            let started = SqliteWatch::start(Arc::clone(&self.database), scope.clone(), interest).await;
            let watch = started.map_err(may_pass)?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn examine(&self) -> Answer<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(examine::examine(self, &self.database))
    }

    fn run_beside(&self, work: Work) -> Result<(), Work> {
        Err(work)
    }
}

impl LeasePurge for SqliteStore {
    fn notes_first(&self) -> bool {
        false
    }

    fn purge<'a>(&'a self, request: &'a Purge) -> Answer<'a, Result<Purged, StoreError>> {
        Box::pin(self.patiently(
            || format!("the clean-up of leases \"{}*\"", request.prefix.escape_debug()),
            |database| purge::purge(database, request),
        ))
    }
}

/// The failure of a watch. That it is unsupported would say that the store has no watches, and be final: a
/// second name of the file may go again.
fn may_pass(error: StoreError) -> StoreError {
    match error.fault {
        Fault::Unsupported => StoreError {
            fault: Fault::Unreachable,
            ..error
        },
        _ => error,
    }
}

fn batch(first: Option<&LeaseName>, requests: usize) -> String {
    match first {
        Some(first) if requests == 1 => subject(first),
        Some(first) => format!("lease \"{first}\" and {} more", requests - 1),
        None => "no lease".to_owned(),
    }
}
